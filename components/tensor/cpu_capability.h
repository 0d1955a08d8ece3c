#pragma once

#include <string>

namespace components {

/// What decides the bits of arithmetic on this processor, as a record of a run has it: LibTorch's instructions, those
/// of the kernels here, and which matrix products are theirs: `AVX512, kernels AVX512_BF16, own products`. Only the
/// first follows ATEN_CPU_CAPABILITY.
std::string cpu_capability();

}  // namespace components
