#include "components/kernels/winograd.h"

namespace components::kernels {
namespace {

bool has_wide_registers() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace

template <>
const Winograd<float>* winograd<float>() {
  static const bool wanted = has_wide_registers();
  return wanted ? &winograd_avx512 : nullptr;
}

template <>
const Winograd<Bf16>* winograd<Bf16>() {
#if defined(__x86_64__)
  static const bool wanted =
      has_wide_registers() && __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_supports("amx-bf16");
  return wanted ? &winograd_bf16 : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace components::kernels
