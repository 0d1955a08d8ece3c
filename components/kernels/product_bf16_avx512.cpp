#include <algorithm>
#include <cstring>

#include "components/kernels/product.h"

// After the headers: what they define is shared with code for every processor.
#if defined(__x86_64__)
#include <immintrin.h>
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,prefer-vector-width=512")
#define ROUX_ROUNDS_BF16
#endif
#define ROUX_LEVEL avx512_bf16
#include "components/kernels/packs.inl"

namespace components::kernels::avx512_bf16 {
namespace {

// Two elements a word: the depth of most products of a transformer in one go.
constexpr std::int64_t kWords = 512, kColumns = 1024;

/// The bits of a word are not a number: nothing may be added to them.
ROUX_INLINE Floats spread(float word) { return reinterpret_cast<Floats>(_mm512_set1_ps(word)); }
ROUX_INLINE Floats multiply_add(Floats sums, Floats a, Floats b) {
  return reinterpret_cast<Floats>(
      _mm512_dpbf16_ps(reinterpret_cast<__m512>(sums), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
}

}  // namespace
}  // namespace components::kernels::avx512_bf16

#include "components/kernels/product.inl"

namespace components::kernels {

const ProductKernel<Bf16> product_bf16_avx512 = {
    avx512_bf16::kTileRows,   avx512_bf16::kTileColumns,           avx512_bf16::kScratch,
    2 * avx512_bf16::kWords,  &avx512_bf16::multiply<Bf16, float>, &avx512_bf16::multiply<Bf16, Bf16>,
    &avx512_bf16::pack<Bf16>, &avx512_bf16::packed_size<Bf16>};

}  // namespace components::kernels
