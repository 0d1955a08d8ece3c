#include "components/kernels/int8_dots.h"

#include "components/kernels/processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace components::kernels {
namespace {

using Dot = std::int32_t (*)(const std::int8_t*, const std::int8_t*, std::int64_t);

std::int32_t dot_plain(const std::int8_t* a, const std::int8_t* b, std::int64_t depth) {
  std::int32_t sum = 0;
  for (std::int64_t k = 0; k < depth; ++k) sum += static_cast<std::int32_t>(a[k]) * b[k];
  return sum;
}

#if defined(__x86_64__)

[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] std::int32_t dot_avx512(const std::int8_t* a,
                                                                              const std::int8_t* b,
                                                                              std::int64_t depth) {
  const auto products = [&](std::int64_t k)
      __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), always_inline)) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + k));
    const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + k));
    return _mm512_madd_epi16(_mm512_cvtepi8_epi16(x), _mm512_cvtepi8_epi16(y));
  };
  __m512i first = _mm512_setzero_si512(), second = first;
  std::int64_t k = 0;
  for (; k + 64 <= depth; k += 64) {
    first = _mm512_add_epi32(first, products(k));
    second = _mm512_add_epi32(second, products(k + 32));
  }
  for (; k + 32 <= depth; k += 32) first = _mm512_add_epi32(first, products(k));
  alignas(64) std::int32_t lanes[16];
  _mm512_store_si512(lanes, _mm512_add_epi32(first, second));
  std::int32_t sum = dot_plain(a + k, b + k, depth - k);
  for (const std::int32_t lane : lanes) sum += lane;
  return sum;
}

[[gnu::target("avx2,fma")]] std::int32_t dot_avx2(const std::int8_t* a, const std::int8_t* b, std::int64_t depth) {
  __m256i sums = _mm256_setzero_si256();
  std::int64_t k = 0;
  for (; k + 16 <= depth; k += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + k));
    const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + k));
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_cvtepi8_epi16(x), _mm256_cvtepi8_epi16(y)));
  }
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
  return _mm_cvtsi128_si32(half) + dot_plain(a + k, b + k, depth - k);
}

#endif

Dot dot_of_processor() {
#if defined(__x86_64__)
  if (processor().avx512) return dot_avx512;
  if (processor().avx2) return dot_avx2;
#endif
  return dot_plain;
}

}  // namespace

void int8_dots(const Int8Dots& p) {
  static const Dot dot = dot_of_processor();
  for (std::int64_t column = 0; column < p.columns; ++column) {
    const std::int8_t* const b = p.b + column * p.depth;
    for (std::int64_t row = 0; row < p.rows; ++row) p.c[row * p.c_row + column] = dot(p.a + row * p.depth, b, p.depth);
  }
}

}  // namespace components::kernels
