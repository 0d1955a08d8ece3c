#pragma once

#include "runner/core/result.h"

namespace runner::core {

/// Prepares a process before it loads LibTorch. Call before there is a second thread: it sets environment variables
/// (only unset ones).
void prepare_for_torch();

/// Whether ROUX_CPU_CAPABILITY, if set, has one of its values: `default`, `avx2`, `avx512`, `avx512_bf16`, in small or
/// large letters, ROUX_CPU_MAKER: `amd`, `intel`, and ROUX_CPU_BF16: `0`, `1`. Which kernels that leaves:
/// components/kernels/processor.h.
Result<void> check_cpu_capability();

}  // namespace runner::core
