#pragma once

#include <string>

namespace runner::core {

/// Why a library has no kernels for a GPU: `its compute capability is 6.1, and LibTorch has kernels for 7.5, 8.0`; ""
/// if it has some. `nvcc_flags`: what it was compiled with, `-gencode;arch=compute_75,code=sm_75;...`; "" if unknown.
std::string lack_of_kernels(const std::string& nvcc_flags, int major, int minor);

}  // namespace runner::core
