#include "components/kernels/transformer.h"

#include "components/kernels/transformer_levels.h"

namespace components::kernels {
namespace {

const TransformerLevel& best_level() {
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (wide) return __builtin_cpu_supports("avx512bf16") ? transformer_bf16_avx512 : transformer_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return transformer_avx2;
#endif
  return transformer_plain;
}

}  // namespace

template <>
const TransformerKernels<float>& transformer<float>() {
  static const TransformerLevel& level = best_level();
  return level.of_float;
}

template <>
const TransformerKernels<Bf16>& transformer<Bf16>() {
  static const TransformerLevel& level = best_level();
  return level.of_bf16;
}

}  // namespace components::kernels
