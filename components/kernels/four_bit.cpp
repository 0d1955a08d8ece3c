#include "components/kernels/four_bit.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "components/kernels/block_codes.inl"
#include "components/kernels/processor.h"
#include "components/kernels/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace components::kernels {
namespace {

constexpr FourBitTable table_of(const std::array<float, 16>& values) {
  FourBitTable table{values, {}, {}};
  for (std::size_t i = 0; i < 16; ++i) table.codes[i] = static_cast<std::uint8_t>(i);
  // Of equal values the lower code first.
  std::sort(table.codes.begin(), table.codes.end(),
            [&](std::uint8_t a, std::uint8_t b) { return values[a] < values[b] || (values[a] == values[b] && a < b); });
  for (std::size_t i = 0; i < 15; ++i) table.bounds[i] = (values[table.codes[i]] + values[table.codes[i + 1]]) / 2.0F;
  return table;
}

/// Its place among the values in ascending order.
[[gnu::always_inline]] inline std::int32_t place_of(const FourBitTable& table, float scaled) {
  std::int32_t place = 0;
  for (const float bound : table.bounds) place += scaled > bound ? 1 : 0;
  return place;
}

constexpr std::int64_t kPiece = 256;

/// To the nearest, of two as near to the even one. No NaN.
Bf16 rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U)};
}

template <typename T>
T made(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return rounded(x);
  }
}

/// Numbers of one block from its bytes.
template <typename T>
void widen_plain(const std::uint8_t* bytes, std::int64_t count, float scale, const FourBitTable& table, T* out) {
  for (std::int64_t i = 0; i < count / 2; ++i) {
    out[2 * i] = made<T>(table.values[bytes[i] >> 4U] * scale);
    out[2 * i + 1] = made<T>(table.values[bytes[i] & 15U] * scale);
  }
  if (count % 2 != 0) out[count - 1] = made<T>(table.values[bytes[count / 2] >> 4U] * scale);
}

#if defined(__x86_64__)

[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::always_inline]] inline void store(float* out, __m512 x) {
  _mm512_storeu_ps(out, x);
}

[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::always_inline]] inline void store(Bf16* out, __m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16)));
}

template <typename T>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void widen_avx512(const std::uint8_t* bytes, std::int64_t count,
                                                                        float scale, const FourBitTable& table,
                                                                        T* out) {
  const __m512 values = _mm512_mul_ps(_mm512_loadu_ps(table.values.data()), _mm512_set1_ps(scale));
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i / 2));
    const __m128i low = _mm_set1_epi8(15);
    const __m128i codes = _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(pairs, 4), low), _mm_and_si128(pairs, low));
    store(out + i, _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(codes), values));
  }
  widen_plain(bytes + i / 2, count - i, scale, table, out + i);
}

[[gnu::target("avx2,fma"), gnu::always_inline]] inline void store(float* out, __m256 x) { _mm256_storeu_ps(out, x); }

[[gnu::target("avx2,fma"), gnu::always_inline]] inline void store(Bf16* out, __m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd), 16);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm_packus_epi32(_mm256_castsi256_si128(up), _mm256_extracti128_si256(up, 1)));
}

template <typename T>
[[gnu::target("avx2,fma")]] void widen_avx2(const std::uint8_t* bytes, std::int64_t count, float scale,
                                            const FourBitTable& table, T* out) {
  const __m256 by = _mm256_set1_ps(scale);
  const __m256 first = _mm256_mul_ps(_mm256_loadu_ps(table.values.data()), by);
  const __m256 second = _mm256_mul_ps(_mm256_loadu_ps(table.values.data() + 8), by);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::int32_t four;
    std::memcpy(&four, bytes + i / 2, sizeof(four));
    const __m128i pairs = _mm_cvtsi32_si128(four), low = _mm_set1_epi8(15);
    const __m128i bytes_of = _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(pairs, 4), low), _mm_and_si128(pairs, low));
    const __m256i codes = _mm256_cvtepu8_epi32(bytes_of);
    store(out + i, _mm256_blendv_ps(_mm256_permutevar8x32_ps(first, codes), _mm256_permutevar8x32_ps(second, codes),
                                    _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28))));
  }
  widen_plain(bytes + i / 2, count - i, scale, table, out + i);
}

#endif

template <typename T>
using Widen = void (*)(const std::uint8_t*, std::int64_t, float, const FourBitTable&, T*);

template <typename T>
Widen<T> widen_of_processor() {
#if defined(__x86_64__)
  if (processor().avx512) return widen_avx512<T>;
  if (processor().avx2) return widen_avx2<T>;
#endif
  return widen_plain<T>;
}

}  // namespace

constexpr FourBitTable kNf4 = table_of(
    {-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
     -0.18477343022823334F, -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,
     0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F, 1.0F});
constexpr FourBitTable kFp4 = table_of(
    {0.0F, 0.0625F / 12.0F, 8.0F / 12.0F, 1.0F, 4.0F / 12.0F, 6.0F / 12.0F, 2.0F / 12.0F, 3.0F / 12.0F,  //
     0.0F, -0.0625F / 12.0F, -8.0F / 12.0F, -1.0F, -4.0F / 12.0F, -6.0F / 12.0F, -2.0F / 12.0F, -3.0F / 12.0F});

ROUX_SIMD_BYTES void quantize_four_bit(const float* numbers, std::int64_t count, std::int64_t block,
                                       const FourBitTable& table, std::uint8_t* packed, float* absmax) {
  std::array<std::int32_t, static_cast<std::size_t>(kPiece)> places;
  std::array<std::uint8_t, static_cast<std::size_t>(kPiece)> codes;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t end = std::min(begin + block, count);
    const float largest = absmax_of(numbers + begin, end - begin), scale = reciprocal_of(largest);
    *absmax++ = largest;
    for (std::int64_t at = begin; at < end; at += kPiece) {
      const std::int64_t size = std::min(kPiece, end - at);
      for (std::int64_t i = 0; i < size; ++i) places.data()[i] = place_of(table, numbers[at + i] * scale);
      if (size % 2 != 0) places.data()[size] = place_of(table, 0.0F);
      const std::int64_t padded = size + size % 2;
      for (std::int64_t i = 0; i < padded; ++i) codes.data()[i] = table.codes.data()[places.data()[i]];
      for (std::int64_t i = 0; i < padded / 2; ++i)
        packed[at / 2 + i] = static_cast<std::uint8_t>(codes.data()[2 * i] << 4U | codes.data()[2 * i + 1]);
    }
  }
}

template <typename T>
void dequantize_four_bit(const std::uint8_t* packed, const float* absmax, std::int64_t begin, std::int64_t count,
                         std::int64_t block, const FourBitTable& table, T* out) {
  static const Widen<T> widen = widen_of_processor<T>();
  for (std::int64_t at = begin; at < begin + count;) {
    const std::int64_t end = std::min((at / block + 1) * block, begin + count);
    widen(packed + at / 2, end - at, absmax[at / block], table, out + (at - begin));
    at = end;
  }
}

template void dequantize_four_bit<float>(const std::uint8_t*, const float*, std::int64_t, std::int64_t, std::int64_t,
                                         const FourBitTable&, float*);
template void dequantize_four_bit<Bf16>(const std::uint8_t*, const float*, std::int64_t, std::int64_t, std::int64_t,
                                        const FourBitTable&, Bf16*);

}  // namespace components::kernels
