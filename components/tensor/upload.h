#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <optional>

namespace components {

class TensorMap;

/// Copies micro-batches to the device of a training.
///
/// Threads  one thread at a time
class Uploader {
 public:
  struct Options {
    bool pin_memory = true;    ///< through page-locked memory
    bool non_blocking = true;  ///< on a stream of its own, while the device computes; needs pin_memory
    bool one_shape = false;    ///< note_rows() adds tensors of one shape
  };

  Uploader() : device_(c10::kCPU) {}
  Uploader(const c10::Device& device, const Options& options) : device_(device), options_(options) {}

  /// The same tensors on the device, and what note_rows() adds; on the CPU the batch itself, and tensors that are there
  /// already are not copied.
  /// The caller's stream may use them at once: with `non_blocking` it waits for the copy, this thread does not.
  TensorMap operator()(const TensorMap& batch) const;

 private:
  TensorMap copy_aside(const TensorMap& pinned) const;

  c10::Device device_;
  Options options_;
  mutable std::optional<c10::Stream> stream_;  // from the first copy on
};

}  // namespace components
