#pragma once

#include <cstdint>

namespace components::sampler {

/// Random numbers that depend on the seed and their purpose only, not on earlier draws: draws of variant 12 are the
/// same whether or not this process has drawn those of variant 11.
///
/// Source  Steele, Lea & Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014 (SplitMix64)
class CounterRng {
 public:
  CounterRng(std::uint64_t seed, std::int64_t number, std::uint64_t purpose = 0)
      : state_(mixed(mixed(mixed(seed) + static_cast<std::uint64_t>(number)) + purpose)) {}

  std::uint64_t bits() { return mixed(state_ += kGolden); }
  /// Even in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace components::sampler
