#pragma once

#include <string>

namespace runner::core {

/// Peak rates of a GPU's matrix products in FLOP/s, dense (without structured sparsity), as its data sheet has them.
/// 0: the GPU has no such units, or is not known.
struct GpuPeak {
  double float32 = 0;   ///< without tensor cores
  double tf32 = 0;      ///< float32 products with `precision.matmul_precision: high`
  double float16 = 0;   ///< summed in float32
  double bfloat16 = 0;  ///< summed in float32
};

/// `name` as CUDA and nvidia-smi say it: `NVIDIA A100-SXM4-80GB`.
GpuPeak gpu_peak(const std::string& name);

}  // namespace runner::core
