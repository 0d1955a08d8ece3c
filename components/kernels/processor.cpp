#include "components/kernels/processor.h"

namespace components::kernels {

#if defined(__x86_64__)

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

bool has_amx_bf16() { return __builtin_cpu_supports("amx-bf16"); }

bool is_intel() { return __builtin_cpu_is("intel"); }

#else

bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool has_avx512_bf16() { return false; }
bool has_amx_bf16() { return false; }
bool is_intel() { return false; }

#endif

}  // namespace components::kernels
