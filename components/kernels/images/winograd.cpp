#include "components/kernels/images/winograd.h"

#include "components/kernels/processor.h"

namespace components::kernels {

template <>
const Winograd<float>* winograd<float>() {
#if defined(__x86_64__)
  static const bool wanted = processor().avx512;
  return wanted ? &winograd_avx512 : nullptr;
#else
  return nullptr;
#endif
}

template <>
const Winograd<Bf16>* winograd<Bf16>() {
#if defined(__x86_64__)
  static const bool wanted = processor().multiplies_bf16_faster() && !processor().amx_bf16;
  return wanted ? &winograd_bf16 : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace components::kernels
