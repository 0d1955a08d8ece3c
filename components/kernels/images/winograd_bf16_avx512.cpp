#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "components/kernels/images/winograd.h"
#include "components/kernels/transformer.h"

// After the headers: what they define is shared with code for every processor.
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,prefer-vector-width=512")
#define ROUX_LEVEL avx512_bf16
#define ROUX_NUMBER Bf16
#define ROUX_LEVEL_TABLE winograd_bf16
#include "components/kernels/packs.inl"

namespace components::kernels {
namespace avx512_bf16 {
namespace {

/// Each lane adds the products of two neighbours.
ROUX_INLINE Floats add_product(Floats sum, float a, Floats b) {
  const auto both = reinterpret_cast<__m512bh>(_mm512_set1_ps(a));
  return reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), both, reinterpret_cast<__m512bh>(b)));
}

ROUX_INLINE void put(Bf16* to, Floats x) {
  const __m256bh low = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(x));
  std::memcpy(static_cast<void*>(to), &low, sizeof low);
}

/// Two rows of numbers as one of words.
ROUX_INLINE Floats words(Floats first, Floats second) {
  using Halves32 = std::uint16_t __attribute__((vector_size(64)));
  const auto side_by_side = reinterpret_cast<Halves32>(
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first)));
  return reinterpret_cast<Floats>(__builtin_shufflevector(side_by_side, side_by_side, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
                                                          5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                                          29, 14, 30, 15, 31));
}

}  // namespace
}  // namespace avx512_bf16
}  // namespace components::kernels

#include "components/kernels/images/winograd.inl"

#endif
