#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "components/kernels/images/images_levels.h"
#include "components/kernels/processor.h"
#include "components/kernels/transformer_levels.h"
#include "runner/train/experiment/bf16_master_weights.h"

// What tests of kernels share: the levels that this processor can run, and references in double precision.

namespace tests::kernels {

using components::kernels::Bf16;
using components::kernels::DropMask;

inline std::vector<const components::kernels::TransformerLevel*> transformer_levels() {
  std::vector<const components::kernels::TransformerLevel*> all = {&components::kernels::transformer_plain};
#if defined(__x86_64__)
  if (components::kernels::processor().avx2) all.push_back(&components::kernels::transformer_avx2);
  if (components::kernels::processor().avx512) all.push_back(&components::kernels::transformer_avx512);
  if (components::kernels::processor().avx512_bf16) all.push_back(&components::kernels::transformer_bf16_avx512);
#endif
  return all;
}

inline std::vector<const components::kernels::ImageLevel*> image_levels() {
  std::vector<const components::kernels::ImageLevel*> all = {&components::kernels::images_plain};
#if defined(__x86_64__)
  if (components::kernels::processor().avx2) all.push_back(&components::kernels::images_avx2);
  if (components::kernels::processor().avx512) all.push_back(&components::kernels::images_avx512);
#endif
  return all;
}

template <typename T, typename Level>
const auto& of_type(const Level& level) {
  if constexpr (std::is_same_v<T, float>) {
    return level.of_float;
  } else {
    return level.of_bf16;
  }
}

inline float value_of(float x) { return x; }
inline float value_of(Bf16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

template <typename T>
double entry(const std::vector<T>& values, std::int64_t i) {
  return static_cast<double>(value_of(values[index(i)]));
}

/// Rows of type T: what is drawn from a normal distribution, in bfloat16 without its lower half.
template <typename T>
std::vector<T> draw(std::int64_t size, unsigned seed, float spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<T> values(static_cast<std::size_t>(size));
  for (T& value : values) {
    const float number = normal(random);
    if constexpr (std::is_same_v<T, float>) {
      value = number;
    } else {
      std::uint32_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      value = Bf16{static_cast<std::uint16_t>(bits >> 16)};
    }
  }
  return values;
}

constexpr double kFloatUnit = 0x1p-24;  ///< what rounding to float32 may change, as a share of the number
constexpr double kBf16Unit = 0x1p-8;    ///< the same of bfloat16, which has 8 bits

/// Whether `found` is what float32 may make of `exact`: `roundings` times a unit of `size`, the sum of the sizes of
/// what is added up to it; and, where it is stored as bfloat16, one unit of that.
template <typename T>
bool is_near(T found, double exact, double size, double roundings) {
  const double in_float = roundings * kFloatUnit * size + 1e-37;
  const double stored = std::is_same_v<T, Bf16> ? kBf16Unit * (std::abs(exact) + in_float) : 0.0;
  return std::abs(static_cast<double>(value_of(found)) - exact) <= in_float + stored;
}

/// What a mask multiplies an element with.
inline double factor_of(const DropMask& mask, std::int64_t row, std::int64_t column) {
  if (!mask.drops()) return 1;
  const auto at = static_cast<std::uint64_t>(mask.first_row + row);
  const auto lane = static_cast<std::uint32_t>(column / 64 * 16 + column % 16);
  const auto words =
      runner::train::philox({lane, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32), mask.number},
                            {static_cast<std::uint32_t>(mask.key), static_cast<std::uint32_t>(mask.key >> 32)});
  return words[static_cast<std::size_t>(column % 64 / 16)] >= mask.threshold ? static_cast<double>(mask.scale) : 0.0;
}

}  // namespace tests::kernels
