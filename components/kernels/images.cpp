#include "components/kernels/images.h"

#include "components/kernels/images_levels.h"

namespace components::kernels {
namespace {

const ImageLevel& best_level() {
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (wide) return images_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return images_avx2;
#endif
  return images_plain;
}

}  // namespace

template <>
const ImageKernels<float>& images<float>() {
  static const ImageLevel& level = best_level();
  return level.of_float;
}

template <>
const ImageKernels<Bf16>& images<Bf16>() {
  static const ImageLevel& level = best_level();
  return level.of_bf16;
}

}  // namespace components::kernels
