#include "components/kernels/images/images.h"

#include "components/kernels/images/images_levels.h"
#include "components/kernels/processor.h"

namespace components::kernels {
namespace {

const ImageLevel& best_level() {
#if defined(__x86_64__)
  if (processor().avx512) return images_avx512;
  if (processor().avx2) return images_avx2;
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
