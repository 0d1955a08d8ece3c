#include "components/kernels/winograd.h"

namespace components::kernels {

const Winograd* winograd() {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? &winograd_avx512 : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace components::kernels
