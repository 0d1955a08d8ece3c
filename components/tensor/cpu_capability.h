#pragma once

#include <string>

namespace components {

/// What determines the bits of arithmetic on this CPU, as recorded by a run: the instructions of LibTorch and of roux's
/// kernels, and which matrix products are roux's own: `AVX512, kernels AVX512_BF16, own products`. Only the first
/// follows ATEN_CPU_CAPABILITY, only the second ROUX_CPU_CAPABILITY.
std::string cpu_capability();

}  // namespace components
