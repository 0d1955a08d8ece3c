#include "runner/train/experiment/training_device.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "components/ops/kernel_policy.h"
#include "components/tensor/device.h"
#include "generated/section/compile.h"
#include "generated/section/precision.h"
#include "runner/core/platform/gpu_peak.h"
#include "runner/resolve/recipe.h"

namespace runner::train {
namespace {

/// Both read when CUDA starts. What the user has set stays.
void set_cuda_environment(const resolve::Recipe& recipe) {
  constexpr int kKeep = 0;
  if (recipe.deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", kKeep);
}

bool uses_tf32(const resolve::Recipe& recipe) {
  return recipe.precision->matmul_precision != sections::precision::MatmulPrecision::kHighest;
}

// LibTorch leaves TF32 on for convolutions, whatever is said of matrix products.
void set_cuda_kernels(const resolve::Recipe& recipe) {
  at::Context& torch = at::globalContext();
  torch.setAllowTF32CuDNN(uses_tf32(recipe));
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
  components::use_own_stream(device, recipe.compile->cuda_graphs);
}

const char* product_format(const resolve::Recipe& recipe, c10::Device device) {
  switch (recipe.precision->mode) {
    case sections::precision::Mode::k32True: return !device.is_cpu() && uses_tf32(recipe) ? "TF32" : "float32";
    case sections::precision::Mode::k16Mixed: return "float16";
    case sections::precision::Mode::kBf16Mixed:
    case sections::precision::Mode::kBf16True: return "bfloat16";
  }
  return "float32";
}

double peak_of_gpu(const resolve::Recipe& recipe, c10::Device device, const std::vector<std::string>& names) {
  const auto index = static_cast<std::size_t>(std::max<int>(0, device.index()));
  if (index >= names.size()) return 0.0;
  const core::GpuPeak peak = core::gpu_peak(names[index]);
  const std::string_view format = product_format(recipe, device);
  return format == "TF32"       ? peak.tf32
         : format == "float16"  ? peak.float16
         : format == "bfloat16" ? peak.bfloat16
                                : peak.float32;
}

std::string fastest_precision() {
  using sections::precision::Mode;
  return std::string(to_text(components::has_bf16_units() ? Mode::kBf16Mixed : Mode::k32True));
}

}  // namespace runner::train
