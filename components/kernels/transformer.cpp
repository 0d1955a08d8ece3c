#include "components/kernels/transformer.h"

#include "components/kernels/processor.h"
#include "components/kernels/transformer_levels.h"

namespace components::kernels {
namespace {

const TransformerLevel& best_level() {
#if defined(__x86_64__)
  if (processor().avx512_bf16) return transformer_bf16_avx512;
  if (processor().avx512) return transformer_avx512;
  if (processor().avx2) return transformer_avx2;
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
