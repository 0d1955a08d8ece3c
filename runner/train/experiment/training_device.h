#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace runner::resolve {
struct Recipe;
}
namespace runner::train {

/// The device that a recipe names. `auto` is settled before a training; where it is not, as in `plan`, it is the CPU.
/// `cuda` is the GPU of a process's rank on its machine.
c10::Device device_of(const resolve::Recipe& recipe, int local_rank = 0);

/// What LibTorch decides once for a process: makes the recipe's device the current one, with a stream on which graphs
/// can be captured where it asks for them, and sets what its kernels may do. RunError when this process does not have
/// that device.
void prepare_device(const resolve::Recipe& recipe, int local_rank = 0);

/// The mode of `precision` that trains fastest on this processor: 32-true or bf16-mixed.
std::string fastest_precision();

/// The number format that matrix products are computed in: `float32`, `TF32`, `float16`, `bfloat16`.
const char* product_format(const resolve::Recipe& recipe, c10::Device device);

/// Peak of a GPU's matrix products in that format, in FLOP/s; 0 when it is not known. `names`: of the GPUs that this
/// process sees, in CUDA's order.
double peak_of_gpu(const resolve::Recipe& recipe, c10::Device device, const std::vector<std::string>& names);

}  // namespace runner::train
