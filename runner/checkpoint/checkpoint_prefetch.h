#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/result.h"
#include "runner/core/tensor_fwd.h"

namespace runner::checkpoint {

struct HeldFile;

/// Reads a checkpoint once, before it is loaded: verifies its files against the manifest while filling the tensors that
/// the load then returns. Runs on its own threads while model and data are built.
///
/// A file that cannot be held in memory is still verified, and loaded from disk.
class CheckpointPrefetch {
 public:
  /// Null when there is no checkpoint (""), its manifest cannot be read, or its tensors lie in pieces, or are
  /// more than half of `memory_bytes`: the model is in memory a second time then.
  static std::unique_ptr<CheckpointPrefetch> begin(const std::string& checkpoint, std::int64_t memory_bytes);
  explicit CheckpointPrefetch(std::string checkpoint);
  ~CheckpointPrefetch();  ///< cancels reading

  const std::string& checkpoint() const { return checkpoint_; }
  /// The result of artifact::verify_checkpoint(). Blocks until all files are read.
  const core::Result<artifact::Manifest>& verification() const { return verification_.get(); }
  /// How long the threads took.
  double seconds() const;

  /// As artifact::SafetensorsReader::open(), from memory if the file is held.
  core::Result<std::unique_ptr<artifact::SafetensorsReader>> open(const std::string& path) const;
  /// The tensor with these bytes, in row-major order. Undefined when it is not held, or was returned before.
  at::Tensor take(const artifact::TensorBytes& bytes);
  /// Frees everything that no reader and no tensor keeps.
  void release();

 private:
  core::Result<artifact::Manifest> read();
  core::Result<void> read_file(const std::string& path, const artifact::FileEntry& recorded);

  const std::string checkpoint_;
  std::atomic<bool> cancelled_{false};
  double seconds_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<HeldFile>> files_;  // by path; guarded by mutex_ until verification has ended
  std::shared_future<core::Result<artifact::Manifest>> verification_;  // last: the thread uses the others
};

}  // namespace runner::checkpoint
