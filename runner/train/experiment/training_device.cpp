#include "runner/train/experiment/training_device.h"

#include <ATen/Context.h>

#include <cstdlib>

#include "components/tensor/device.h"

namespace runner::train {
namespace {

/// Both read when CUDA starts. What the user has set stays.
void set_cuda_environment(const resolve::Recipe& recipe) {
  constexpr int kKeep = 0;
  if (recipe.deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", kKeep);
}

// LibTorch leaves TF32 on for convolutions, whatever is said of matrix products.
void set_cuda_kernels(const resolve::Recipe& recipe) {
  at::Context& torch = at::globalContext();
  const bool tf32 = recipe.precision.matmul_precision != sections::precision::MatmulPrecision::kHighest;
  torch.setAllowTF32CuDNN(tf32);
  torch.setDeterministicCuDNN(recipe.deterministic);
}

}  // namespace

c10::Device device_of(const resolve::Recipe& recipe, int local_rank) {
  if (recipe.device == "auto") return c10::Device(c10::kCPU);
  return components::named_device(recipe.device, local_rank);
}

void prepare_device(const resolve::Recipe& recipe, int local_rank) {
  const c10::Device device = device_of(recipe, local_rank);
  if (device.is_cuda()) set_cuda_environment(recipe);
  components::use_device(device);
  if (device.is_cuda()) set_cuda_kernels(recipe);
}

}  // namespace runner::train
