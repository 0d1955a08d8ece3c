#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "runner/core/tensor_fwd.h"

namespace components {

/// Copies of tensors at one moment in page-locked memory of the CPU. The device makes them in the order of its work:
/// after what computes the tensors, before what changes them next. The thread that asks for them does not wait.
///
/// Threads  wait() on any thread, the rest on the one that computes
class Download {
 public:
  explicit Download(const c10::Device& device);
  ~Download();
  Download(Download&&) noexcept;
  Download& operator=(Download&&) noexcept;

  /// A row-major copy on the CPU. What it holds is undefined before wait() if `tensor` is on the device. Without
  /// page-locked memory it waits for the copy, and logs a warning, once per process.
  at::Tensor operator()(const at::Tensor& tensor);
  /// Call it after the last tensor.
  void end();
  /// Blocks until everything is copied; at once without a device. c10::Error when the device has failed.
  void wait() const;

 private:
  struct Copies;
  std::unique_ptr<Copies> copies_;  // null on the CPU
};

}  // namespace components
