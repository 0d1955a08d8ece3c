#include "components/transform/spans.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "components/tensor/philox.h"
#include "runner/core/error.h"

namespace components::transform {
namespace {

/// Random numbers of a sample, one after the other.
class Numbers {
 public:
  explicit Numbers(const Draw& draw) : draw_(draw) {}

  /// Of a fraction of all results: `wanted` of `all`.
  bool is_one_of(std::int64_t wanted, std::int64_t all) {
    const std::uint32_t word =
        philox({number_++, static_cast<std::uint32_t>(draw_.index), static_cast<std::uint32_t>(draw_.index >> 32),
                static_cast<std::uint32_t>(draw_.epoch)},
               draw_.seed)[0];
    return static_cast<std::int64_t>(std::uint64_t{word} * static_cast<std::uint64_t>(all) >> 32U) < wanted;
  }

 private:
  Draw draw_;
  std::uint32_t number_ = 0;
};

/// Lengths of `parts` parts that `items` are cut into, at least 1 each.
std::vector<std::int64_t> parts_of(std::int64_t items, std::int64_t parts, Numbers& numbers) {
  std::vector<std::int64_t> lengths;
  std::int64_t length = 1;
  for (std::int64_t left = items - 1, cuts = parts - 1; left > 0; --left) {
    if (numbers.is_one_of(cuts, left)) {
      --cuts;
      lengths.push_back(length);
      length = 0;
    }
    ++length;
  }
  lengths.push_back(length);
  return lengths;
}

/// To the nearest whole number; halves to the even one, as NumPy and TensorFlow do.
std::int64_t rounded(double value) {
  const double below = std::floor(value), rest = value - below;
  const bool up = rest > 0.5 || (rest == 0.5 && std::fmod(below, 2) != 0);
  return static_cast<std::int64_t>(below) + (up ? 1 : 0);
}

}  // namespace

SpanCounts span_counts(std::int64_t length, double density, double mean) {
  if (length < 2) return {};
  const std::int64_t tokens = std::clamp<std::int64_t>(rounded(static_cast<double>(length) * density), 1, length - 1);
  const auto fewer = static_cast<double>(std::min(tokens, length - tokens));  // each span stands behind what stays
  return {tokens, std::max<std::int64_t>(1, rounded(fewer / mean))};
}

std::vector<bool> span_mask(std::int64_t length, const SpanCounts& counts, const Draw& draw) {
  std::vector<bool> mask(static_cast<std::size_t>(length));
  if (counts.spans == 0) return mask;
  Numbers numbers(draw);
  const auto out = parts_of(counts.tokens, counts.spans, numbers),
             stay = parts_of(length - counts.tokens, counts.spans, numbers);
  auto at = mask.begin();
  for (std::size_t i = 0; i < out.size(); ++i) {
    at += stay[i];
    std::fill_n(at, out[i], true);
    at += out[i];
  }
  return mask;
}

CutText cut_spans(std::span<const std::int64_t> ids, const std::vector<bool>& mask,
                  std::span<const std::int32_t> sentinels, std::int32_t end) {
  CutText cut;
  std::size_t spans = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (mask[i] && (i == 0 || !mask[i - 1])) {
      RUNNER_ASSERT(spans < sentinels.size(), "there is a sentinel for each span");
      cut.source.push_back(sentinels[spans]);
      cut.target.push_back(sentinels[spans]);
      ++spans;
    }
    (mask[i] ? cut.target : cut.source).push_back(ids[i]);
  }
  cut.source.push_back(end);
  cut.target.push_back(end);
  return cut;
}

}  // namespace components::transform
