#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "runner/core/tensor_fwd.h"

namespace components {

/// Copies of tensors at one moment in page-locked memory of the CPU, made on a stream of their own: the thread that
/// asks for them goes on, and what it has the device compute next waits for them there.
///
/// Threads  wait() on any thread, the rest on the one that computes
class Download {
 public:
  explicit Download(const c10::Device& device);
  ~Download();
  Download(Download&&) noexcept;
  Download& operator=(Download&&) noexcept;

  /// A row-major copy on the CPU. What it holds is undefined before wait() if `tensor` is on the device.
  at::Tensor operator()(const at::Tensor& tensor);
  /// Call it after the last tensor and before the device changes one of them.
  void end();
  /// Blocks until everything is copied; at once without a device. c10::Error when the device has failed.
  void wait() const;

 private:
  struct Copies;
  std::unique_ptr<Copies> copies_;  // null on the CPU
};

}  // namespace components
