#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <vector>

// What the pretended accelerator does while a graph is captured: it runs each kernel for the shapes of its results,
// notes it, and at the end puts memory and generator back. A replay runs the kernels again on the same memory.

namespace tests::accelerator {

/// Whether the current stream of a device is captured.
bool is_captured(c10::DeviceIndex device);
/// As CUDA does: an error if the current stream of the device is captured.
void refuse_while_captured(c10::DeviceIndex device, const char* what);
/// Adds a kernel to the graph that is captured. `kernel` runs it and `memory` is what it reads and writes.
void note_kernel(std::function<void()> kernel, const std::vector<at::Tensor>& memory);

/// The same memory as another tensor: what a graph may keep without being seen by autograd.
at::Tensor same_memory(const at::Tensor& tensor);
/// The same for an argument, adding its tensors to `memory`. A number of the CPU is copied: a graph keeps its value.
c10::IValue same_memory(const c10::IValue& argument, std::vector<at::Tensor>& memory);

}  // namespace tests::accelerator
