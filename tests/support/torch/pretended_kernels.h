#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <vector>

namespace tests::accelerator {

/// A kernel runs now. Throws the error of fail_after() when it is due.
void count_kernel();
/// Puts the generators that a device's kernels draw from back to their states of now.
std::function<void()> keep_generators(c10::DeviceIndex device);

/// While it lives, copies to the CPU are the kernel's own: it runs on copies.
class InKernel {
 public:
  InKernel() { ++depth; }
  ~InKernel() { --depth; }
  InKernel(const InKernel&) = delete;
  InKernel& operator=(const InKernel&) = delete;
  static bool now() { return depth > 0; }

 private:
  static thread_local int depth;
};

/// What a graph keeps of tensors that a kernel reads or writes.
std::vector<at::Tensor> captured(const std::vector<at::Tensor>& tensors);
/// Calls `compute`, which runs a kernel. While the current stream is captured, a graph gets it, too, and what `compute`
/// returns when it runs again goes into the memory of what it returns now.
std::vector<at::Tensor> run_kernel(c10::DeviceIndex device, const std::vector<at::Tensor>& arguments,
                                   const std::function<std::vector<at::Tensor>()>& compute);
/// The CPU's generator behind a device's default one.
const at::Generator& inner_generator(c10::DeviceIndex device);

}  // namespace tests::accelerator
