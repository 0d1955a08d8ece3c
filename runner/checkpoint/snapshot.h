#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/aligned_bytes.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/tensor_file.h"

namespace runner::checkpoint {

/// The state of a training at one step boundary, file by file, on its way to the disk.
class Snapshot {
 public:
  /// Borrows the tensors: good until the next step moves them. `shard_bytes_max` as in SaveOptions.
  Snapshot(const TrainState& state, std::int64_t shard_bytes_max);

  /// Copies every tensor once into `memory`, with the threads of LibTorch; from then on training may go on. `memory`
  /// is kept by the caller for the next save. False, with nothing changed, when there is not so much of it.
  bool copy_to(artifact::AlignedBytes& memory);

  std::int64_t bytes() const;  ///< that write() puts on the disk, about
  /// Writes and fsyncs every file but the manifest. RunError as save() in checkpoint.h; may be called on another
  /// thread, and again after it threw.
  std::unique_ptr<artifact::CheckpointWriter> write(const SaveOptions& options) const;
  /// Verifies and commits what write() wrote; the tensors are no longer needed. Returns the folder. RunError as save();
  /// may be called again after it threw.
  std::string commit(artifact::CheckpointWriter& draft, const SaveOptions& options) const;
  /// Lets go of the tensors, once they are written.
  void release() { files_.clear(); }

 private:
  int threads_;  ///< of the thread that trains; another one would say something else
  std::string cpu_capability_;
  std::vector<TensorFile> files_;
  std::vector<std::pair<std::string, std::string>> texts_;  ///< file, content
};

}  // namespace runner::checkpoint
