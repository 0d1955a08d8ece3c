#include "components/sampler/math/sobol_sequence.h"

#include <bit>

#include "components/sampler/math/counter_rng.h"
#include "components/sampler/math/sobol_directions.h"

namespace components::sampler {
namespace {

/// Each digit becomes the parity of itself and of some of the digits before it.
template <typename Numbers>
void scramble_digits(Numbers& numbers, CounterRng& rng) {
  Numbers rows{};
  for (std::size_t digit = 0; digit < rows.size(); ++digit) {
    const std::uint32_t own = 0x80000000U >> digit;
    const std::uint32_t before = digit == 0 ? 0 : ~(0xFFFFFFFFU >> digit);
    rows[digit] = own | (static_cast<std::uint32_t>(rng.bits()) & before);
  }
  for (std::uint32_t& number : numbers) {
    std::uint32_t mixed = 0;
    for (std::size_t digit = 0; digit < rows.size(); ++digit) {
      if (std::popcount(number & rows[digit]) % 2 == 1) mixed |= 0x80000000U >> digit;
    }
    number = mixed;
  }
}

}  // namespace

SobolSequence::SobolSequence(std::size_t dimensions, std::optional<std::uint64_t> scramble) {
  for (std::size_t i = 0; i < dimensions; ++i) {
    numbers_.push_back(directions(i));
    shifts_.push_back(0);
    if (!scramble) continue;
    CounterRng rng(*scramble, static_cast<std::int64_t>(i));
    scramble_digits(numbers_.back(), rng);
    shifts_.back() = static_cast<std::uint32_t>(rng.bits());
  }
}

/// Direction number k as a binary fraction: its first digit is bit 31.
SobolSequence::Numbers SobolSequence::directions(std::size_t dimension) {
  const SobolDirection& from = kSobolDirections[dimension];
  const int degree = static_cast<int>(std::bit_width(from.polynomial)) - 1;
  Numbers m{};
  for (int k = 0; k < kBits; ++k) {
    if (k < degree || degree == 0) {
      m[k] = degree == 0 ? 1 : from.initial[k];
      continue;
    }
    m[k] = m[k - degree] ^ (m[k - degree] << degree);
    for (int i = 1; i < degree; ++i) {
      if ((from.polynomial >> (degree - i)) & 1U) m[k] ^= m[k - i] << i;
    }
  }
  for (int k = 0; k < kBits; ++k) m[k] <<= kBits - 1 - k;
  return m;
}

double SobolSequence::at(std::uint64_t index, std::size_t dimension) const {
  const auto gray = static_cast<std::uint32_t>(index ^ (index >> 1));
  std::uint32_t digits = shifts_[dimension];
  for (int k = 0; k < kBits; ++k) {
    if ((gray >> k) & 1U) digits ^= numbers_[dimension][static_cast<std::size_t>(k)];
  }
  return digits * 0x1p-32;
}

}  // namespace components::sampler
