#pragma once

#include "components/kernels/transformer.h"

namespace components::kernels {

/// The same source (transformer.inl) compiled for four kinds of processor.
struct TransformerLevel {
  TransformerKernels<float> of_float;
  TransformerKernels<Bf16> of_bf16;
};
extern const TransformerLevel transformer_bf16_avx512;  ///< with AVX-512 BF16
extern const TransformerLevel transformer_avx512;       ///< AVX-512 F, BW, DQ, VL
extern const TransformerLevel transformer_avx2;         ///< AVX2 and FMA
extern const TransformerLevel transformer_plain;

}  // namespace components::kernels
