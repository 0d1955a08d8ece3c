#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/download.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/aligned_bytes.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/tensor_file.h"

namespace runner::checkpoint {

/// The state of a training at one step boundary, file by file, on its way to disk.
class Snapshot {
 public:
  /// Borrows the tensors: valid until the next step changes them. Those of a device are copied while it computes: then
  /// nothing is borrowed. `shard_bytes_max` as in SaveOptions.
  Snapshot(const TrainState& state, std::int64_t shard_bytes_max);

  bool borrows() const { return download_ == nullptr; }
  /// Copies every tensor into `memory`, with LibTorch's threads; then training may continue. The caller keeps `memory`
  /// for the next save. False, without effect, when there is not enough memory. For a snapshot that borrows.
  bool copy_to(artifact::AlignedBytes& memory);

  std::int64_t bytes() const;  ///< approximate bytes that write() writes
  /// Where write() writes to. RunError as save() in checkpoint.h.
  std::unique_ptr<artifact::CheckpointWriter> begin(const SaveOptions& options) const;
  /// Writes and fsyncs every file but the manifest. RunError as save(); may be called on another thread, and retried
  /// after it threw, to another draft, or the same one where several processes write to it.
  void write(artifact::CheckpointWriter& draft) const;
  /// Verifies and commits what write() wrote; the tensors are no longer needed. Returns the folder. RunError as save();
  /// may be retried after it threw.
  std::string commit(artifact::CheckpointWriter& draft, const SaveOptions& options) const;
  /// Releases the tensors, once they are written. Copies of a device's stay until the training thread destroys this:
  /// freeing page-locked memory records an event on the stream that filled it, which may be captured right now.
  void release() {
    if (borrows()) files_.clear();
  }

 private:
  void add_model(const TrainState& state, std::int64_t shard_bytes_max);
  /// A part's state; returns its values.
  core::Node add_section(const std::string& name, const core::Stateful& part);
  void add_share_of_model(const TrainState& state);
  core::Node add_share_of_section(const std::string& name, const core::Stateful& part, const SaveShare& share);
  void add_generators(const TrainState& state);
  void add_piece(const std::string& set, const std::string& name, const at::Tensor& rows, const core::RowsPlace& place);

  std::unique_ptr<components::Download> download_;  ///< null on the CPU
  int threads_;                                     ///< of the training thread; other threads have other settings
  std::string cpu_capability_;
  std::vector<TensorFile> files_;
  std::vector<artifact::PieceSet> pieces_;                  ///< what of the tensors in them are pieces
  std::optional<TensorFile> shard_;                         ///< of a share, until that is complete
  std::vector<std::pair<std::string, std::string>> texts_;  ///< file, content
};

}  // namespace runner::checkpoint
