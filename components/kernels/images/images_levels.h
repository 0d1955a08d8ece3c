#pragma once

#include "components/kernels/images/images.h"

namespace components::kernels {

/// The same source (images.inl) compiled for three kinds of processor.
struct ImageLevel {
  ImageKernels<float> of_float;
  ImageKernels<Bf16> of_bf16;
};
extern const ImageLevel images_avx512;  ///< AVX-512 F, BW, DQ, VL
extern const ImageLevel images_avx2;    ///< AVX2 and FMA
extern const ImageLevel images_plain;

}  // namespace components::kernels
