#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace components::sampler {

/// Points that fill a cube evenly, however many of them are taken.
///
/// Source  Joe & Kuo 2008 (sobol_directions.h), in the order of Antonov & Saleev's Gray code; Matousek, On the L2-
///         discrepancy for anchored boxes, 1998, for the scrambling
class SobolSequence {
 public:
  /// `scramble`: a seed; nothing: the sequence as it was published, which begins in a corner. At most kSobolDimensions.
  SobolSequence(std::size_t dimensions, std::optional<std::uint64_t> scramble);

  /// Of point `index`, in [0, 1).
  double at(std::uint64_t index, std::size_t dimension) const;

 private:
  static constexpr int kBits = 32;
  using Numbers = std::array<std::uint32_t, kBits>;
  static Numbers directions(std::size_t dimension);

  std::vector<Numbers> numbers_;
  std::vector<std::uint32_t> shifts_;
};

}  // namespace components::sampler
