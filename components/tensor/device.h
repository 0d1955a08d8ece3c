#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "runner/core/tensor_fwd.h"

// A training computes on one device, which Experiment holds and hands down. What is special about a kind of device
// stands behind LibTorch's interfaces for all of them. roux's own kernels are the CPU's: elsewhere plain operations
// replace them.

namespace components {

struct NamedTensor;

/// `cpu`, or `cuda:1`; `cuda` gets `default_index`. In a process whose accelerator is not CUDA, as in tests, `cuda`
/// means that. Does not ask whether this machine has it. RunError for a name that LibTorch does not know.
c10::Device named_device(const std::string& name, int default_index = 0);
/// `cpu`, `cuda:1`.
std::string to_text(const c10::Device& device);
/// Makes it this thread's current device of its kind. RunError when this process does not have it.
void use_device(const c10::Device& device);

/// Makes a stream of its own, or else the default one, this thread's current stream of a device other than the CPU:
/// graphs are not captured on the default one. Waits for all that was started on the device.
void use_own_stream(const c10::Device& device, bool own);

/// Whether roux's own kernels can read it: a CPU tensor, or one of the meta device that stands for one.
bool supports_own_kernels(const at::Tensor& tensor);
/// Moves tensors without replacing them: every owner of one sees it on `device`. They have no gradient yet.
void move_to(const std::vector<NamedTensor>& tensors, const c10::Device& device);
/// Waits for all that was started on it.
void synchronize(const c10::Device& device);
/// Returns memory that LibTorch holds for later allocations, before one that did not fit is tried again.
void empty_cache(const c10::Device& device);

}  // namespace components
