#include <array>
#include <bit>
#include <utility>

#include "components/sampler/sampler.h"
#include "components/sampler/sobol_directions.h"
#include "components/sampler/walk.h"
#include "generated/sampler/sobol.h"  // Config; declares make()
#include "runner/core/error.h"

namespace components::sampler::sobol {
namespace {

constexpr int kBits = 32;
using Numbers = std::array<std::uint32_t, kBits>;

/// Direction number k as a binary fraction: its first digit is bit 31.
Numbers directions(const SobolDirection& from) {
  const int degree = std::bit_width(from.polynomial) - 1;
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

/// Each digit becomes the parity of itself and of some of the digits before it.
void scramble(Numbers& numbers, Draws& draws) {
  Numbers rows{};
  for (int digit = 0; digit < kBits; ++digit) {
    const std::uint32_t own = 0x80000000U >> digit;
    const std::uint32_t before = digit == 0 ? 0 : ~(0xFFFFFFFFU >> digit);
    rows[static_cast<std::size_t>(digit)] = own | (static_cast<std::uint32_t>(draws.bits()) & before);
  }
  for (std::uint32_t& number : numbers) {
    std::uint32_t mixed = 0;
    for (int digit = 0; digit < kBits; ++digit) {
      if (std::popcount(number & rows[static_cast<std::size_t>(digit)]) % 2 == 1) mixed |= 0x80000000U >> digit;
    }
    number = mixed;
  }
}

class Sobol final : public Sampler {
 public:
  Sobol(const Config& config, Inputs inputs) : space_(std::move(inputs.space)) {
    const std::size_t count = space_->dimensions().size();
    if (count > static_cast<std::size_t>(kSobolDimensions)) {
      throw runner::core::RunError("a Sobol sequence has at most " + std::to_string(kSobolDimensions) +
                                       " dimensions here, and the sweep varies " + std::to_string(count),
                                   "sampler: random", runner::core::kExitUsage);
    }
    for (std::size_t i = 0; i < count; ++i) {
      numbers_.push_back(directions(kSobolDirections[i]));
      shifts_.push_back(0);
      if (!config.scramble) continue;
      Draws draws(inputs.seed, static_cast<std::int64_t>(i));
      scramble(numbers_.back(), draws);
      shifts_.back() = static_cast<std::uint32_t>(draws.bits());
    }
  }

  std::optional<Point> propose(const std::vector<Tried>& tried) const override {
    std::size_t left = tried.size();
    // From the beginning: those that the constraints refuse are not counted.
    int refused = 0;
    for (std::uint64_t index = 0; refused < kDrawsMax; ++index) {
      Point point = at(index);
      if (!space_->allows(point)) {
        ++refused;
        continue;
      }
      if (left-- == 0) return point;
      refused = 0;
    }
    return std::nullopt;
  }

 private:
  Point at(std::uint64_t index) const {
    const auto gray = static_cast<std::uint32_t>(index ^ (index >> 1));
    return make_point(*space_, [&](std::size_t i) {
      std::uint32_t digits = shifts_[i];
      for (int k = 0; k < kBits; ++k) {
        if ((gray >> k) & 1U) digits ^= numbers_[i][static_cast<std::size_t>(k)];
      }
      return space_->dimensions()[i].quantile(digits * 0x1p-32);
    });
  }

  std::shared_ptr<const Space> space_;
  std::vector<Numbers> numbers_;
  std::vector<std::uint32_t> shifts_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Sobol>(config, inputs);
}

}  // namespace components::sampler::sobol
