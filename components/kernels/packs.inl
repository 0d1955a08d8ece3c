// Packs of sixteen floats, in which the kernels of a level are written: the compiler cuts them into the registers that
// the level has. Included by each level after its own target, so that nothing of it is shared between levels.

namespace components::kernels {
namespace ROUX_LEVEL {
namespace {

#define ROUX_INLINE [[gnu::always_inline]] inline

constexpr std::int64_t kPack = 16;
using Floats = float __attribute__((vector_size(64)));
using Bits = std::uint32_t __attribute__((vector_size(64)));
using Halves = std::uint16_t __attribute__((vector_size(32)));
using ManyHalves = std::uint16_t __attribute__((vector_size(64)));

ROUX_INLINE Floats all(float value) { return Floats{} + value; }

ROUX_INLINE Bits bits_of(Floats x) { return reinterpret_cast<Bits>(x); }
ROUX_INLINE Floats floats_of(Bits x) { return reinterpret_cast<Floats>(x); }

ROUX_INLINE Floats load(const float* from) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

/// Each number's bits in the lower half of a lane.
ROUX_INLINE Bits widened(const Bf16* from) {
#if defined(ROUX_ROUNDS_BF16)
  // GCC 12 makes five instructions of the conversion below, and warns of the intrinsic without a mask.
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return reinterpret_cast<Bits>(_mm512_maskz_cvtepu16_epi32(0xFFFF, halves));
#else
  Halves x;
  std::memcpy(&x, from, sizeof x);
  return __builtin_convertvector(x, Bits);
#endif
}

ROUX_INLINE Floats load(const Bf16* from) { return floats_of(widened(from) << 16); }

ROUX_INLINE void store(float* to, Floats x) { std::memcpy(to, &x, sizeof x); }

#if defined(ROUX_ROUNDS_BF16)
/// The processor's own instruction: numbers below float32's normal ones become 0.
ROUX_INLINE void store(Bf16* to, Floats x) {
  const __m256bh halves = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(x));
  std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}
#else
ROUX_INLINE void store(Bf16* to, Floats x) {
  const Bits bits = bits_of(x);
  const Bits rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  // A NaN would lose its payload's upper bits and could become infinite.
  const Bits low = x == x ? rounded : (bits >> 16) | 0x40U;
  const Halves halves = __builtin_convertvector(low, Halves);
  std::memcpy(to, &halves, sizeof halves);
}
#endif

/// `size` <= kPack elements, in pieces whose size the compiler knows: a call of memcpy takes longer than all of it.
template <typename T>
ROUX_INLINE void copy_some(T* to, const T* from, std::int64_t size) {
#pragma GCC unroll 5
  for (std::int64_t piece = kPack; piece > 0; piece /= 2) {
    if ((size & piece) == 0) continue;
    std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(piece) * sizeof(T));
    to += piece;
    from += piece;
  }
}

/// The last `size` < kPack elements; the others of the pack are `fill`.
template <typename T>
ROUX_INLINE Floats load_some(const T* from, std::int64_t size, float fill = 0) {
  T some[kPack];
  Floats x = all(fill);
  store(some, x);
  copy_some(some, from, size);
  return load(some);
}

template <typename T>
ROUX_INLINE void store_some(T* to, Floats x, std::int64_t size) {
  T some[kPack];
  store(some, x);
  copy_some(to, some, size);
}

#if defined(ROUX_ROUNDS_BF16)
ROUX_INLINE __mmask16 first_of_pack(std::int64_t size) { return static_cast<__mmask16>((1U << size) - 1U); }

ROUX_INLINE Floats load_some(const float* from, std::int64_t size, float fill = 0) {
  return reinterpret_cast<Floats>(_mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_of_pack(size), from));
}
ROUX_INLINE Floats load_some(const Bf16* from, std::int64_t size, float fill = 0) {
  const __mmask16 some = first_of_pack(size);
  const __m512i words = _mm512_maskz_cvtepu16_epi32(some, _mm256_maskz_loadu_epi16(some, from));
  return reinterpret_cast<Floats>(_mm512_mask_slli_epi32(_mm512_castps_si512(_mm512_set1_ps(fill)), some, words, 16));
}

ROUX_INLINE void store_some(float* to, Floats x, std::int64_t size) {
  _mm512_mask_storeu_ps(to, first_of_pack(size), reinterpret_cast<__m512>(x));
}
ROUX_INLINE void store_some(Bf16* to, Floats x, std::int64_t size) {
  const __m256bh halves = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(x));
  _mm256_mask_storeu_epi16(to, first_of_pack(size), reinterpret_cast<__m256i>(halves));
}
#endif

/// `step(i, load, store)` for each pack of a row, the last one in part. `load(p)` and `store(p, x)` take pointers to
/// the row's first element.
template <typename Step>
ROUX_INLINE void each_pack(std::int64_t size, const Step& step) {
  std::int64_t i = 0;
  for (; i + kPack <= size; i += kPack) {
    step(
        [i](const auto* row) __attribute__((always_inline)) { return load(row + i); },
        [i](auto* row, Floats x) __attribute__((always_inline)) { store(row + i, x); });
  }
  if (i == size) return;
  const std::int64_t rest = size - i;
  step(
      [ i, rest ](const auto* row) __attribute__((always_inline)) { return load_some(row + i, rest); },
      [ i, rest ](auto* row, Floats x) __attribute__((always_inline)) { store_some(row + i, x, rest); });
}

#define ROUX_EACH(size) \
  each_pack(size, [&]([[maybe_unused]] const auto& get, [[maybe_unused]] const auto& put) __attribute__((always_inline))

/// The lanes, turned by `Lanes`.
template <std::uint32_t Lanes>
ROUX_INLINE Floats turned(Floats x) {
  Bits from = {};
#pragma GCC unroll 16
  for (std::uint32_t lane = 0; lane < kPack; ++lane) from[lane] = (lane + Lanes) % kPack;
  return __builtin_shuffle(x, from);
}

/// In a fixed order, whatever the level: halves onto each other.
ROUX_INLINE float add_up(Floats x) {
  x += turned<8>(x);
  x += turned<4>(x);
  x += turned<2>(x);
  x += turned<1>(x);
  return x[0];
}

ROUX_INLINE Floats larger(Floats x, Floats y) { return x > y ? x : y; }
ROUX_INLINE float largest(Floats x) {
  x = larger(x, turned<8>(x));
  x = larger(x, turned<4>(x));
  x = larger(x, turned<2>(x));
  x = larger(x, turned<1>(x));
  return x[0];
}

}  // namespace
}  // namespace ROUX_LEVEL
}  // namespace components::kernels
