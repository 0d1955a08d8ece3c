#include "components/generation/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "components/tensor/philox.h"

namespace components::generation {
namespace {

using Logits = std::span<float>;
using ConstLogits = std::span<const float>;

constexpr float kLeftOut = -std::numeric_limits<float>::infinity();

/// The largest logit; nothing where one is NaN or inf, or all are -inf.
std::optional<float> largest(ConstLogits logits) {
  float most = kLeftOut;
  bool ordered = true;
  for (const float logit : logits) {
    ordered &= logit < std::numeric_limits<float>::infinity();  // false for NaN, too
    most = logit > most ? logit : most;
  }
  return ordered && most > kLeftOut ? std::make_optional(most) : std::nullopt;
}

void penalize(Logits logits, std::span<const std::int32_t> seen, double penalty) {
  const auto factor = static_cast<float>(penalty);
  std::vector<bool> done(logits.size());
  for (const std::int32_t id : seen) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size()) continue;
    const auto at = static_cast<std::size_t>(id);
    if (done[at]) continue;
    done[at] = true;
    logits[at] = logits[at] < 0 ? logits[at] * factor : logits[at] / factor;
  }
}

void keep_top_k(Logits logits, std::int64_t top_k) {
  const auto kept = static_cast<std::size_t>(top_k);
  if (kept >= logits.size()) return;
  std::vector<float> copy(logits.begin(), logits.end());
  const auto last = copy.begin() + static_cast<std::ptrdiff_t>(kept) - 1;
  std::nth_element(copy.begin(), last, copy.end(), std::greater<>());
  for (float& logit : logits) logit = logit < *last ? kLeftOut : logit;
}

struct Candidate {
  float logit, probability;
  std::int32_t id;
};

/// The order of top_p: of equal logits the larger id stays longer, as in a stable sort from the smallest.
bool before(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id > b.id; }

/// Sum of exp(logit - most).
double exponentials(ConstLogits logits, float most) {
  double sum = 0;
  for (const float logit : logits) {
    if (logit != kLeftOut) sum += std::exp(static_cast<double>(logit) - most);
  }
  return sum;
}

/// The tokens that are not left out, with their softmax in float32, in which Transformers compares it.
std::vector<Candidate> candidates_of(ConstLogits logits, float most) {
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == kLeftOut) continue;
    const double value = std::exp(static_cast<double>(logits[i]) - most);
    sum += value;
    candidates.push_back({logits[i], static_cast<float>(value), static_cast<std::int32_t>(i)});
  }
  const auto divisor = static_cast<float>(sum);
  for (Candidate& candidate : candidates) candidate.probability /= divisor;
  return candidates;
}

/// Transformers sorts, adds up from the least probable token, and leaves out while the sum is at most 1 - p. Which
/// those are is found here without sorting: each pass halves the part that the border lies in.
void keep_top_p(Logits logits, double top_p, std::int64_t min_kept) {
  std::vector<Candidate> candidates = candidates_of(logits, *largest(logits));
  const auto limit = static_cast<float>(1 - top_p);
  const auto add = [](double sum, const Candidate& candidate) { return sum + candidate.probability; };
  double total = 0;
  for (const Candidate& candidate : candidates) total = add(total, candidate);
  auto first = candidates.begin(), last = candidates.end();
  double above = 0;  // the sum of those before `first`
  while (first != last) {
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, before);
    double above_middle = above;
    for (auto it = first; it != middle; ++it) above_middle = add(above_middle, *it);
    if (static_cast<float>(total - above_middle) <= limit) {
      last = middle;
    } else {
      above = add(above_middle, *middle);
      first = middle + 1;
    }
  }
  if (first - candidates.begin() < min_kept) {
    first = candidates.begin() + std::min<std::ptrdiff_t>(min_kept, std::ssize(candidates));
    std::nth_element(candidates.begin(), first - 1, candidates.end(), before);
  }
  for (; first != candidates.end(); ++first) logits[static_cast<std::size_t>(first->id)] = kLeftOut;
}

/// The smallest of that number of largest logits, and how many that equal it are among them.
struct Border {
  float logit;
  std::int64_t equal;
};

Border border_of(ConstLogits logits, float most, std::int64_t count) {
  if (count <= 1) return {most, 1};
  std::vector<float> copy(logits.begin(), logits.end());
  const auto last = copy.begin() + std::min<std::ptrdiff_t>(count, std::ssize(copy)) - 1;
  std::nth_element(copy.begin(), last, copy.end(), std::greater<>());
  return {*last, std::count(copy.begin(), last + 1, *last)};
}

void keep_min_p(Logits logits, double min_p, std::int64_t min_kept) {
  const float most = *largest(logits);
  const double sum = exponentials(logits, most);
  const auto limit = static_cast<float>(min_p) * static_cast<float>(1 / sum);
  Border border = border_of(logits, most, min_kept);  // these stay in any case
  for (float& logit : logits) {
    if (logit == kLeftOut || logit > border.logit) continue;
    if (logit == border.logit && border.equal > 0) {
      --border.equal;
    } else if (static_cast<float>(std::exp(static_cast<double>(logit) - most) / sum) < limit) {
      logit = kLeftOut;
    }
  }
}

/// A token by its fraction of the softmax's sum, in two steps: which part of the logits, then which token of it.
std::int32_t draw(ConstLogits logits, float most, double fraction) {
  constexpr std::size_t kPart = 512;
  std::vector<double> sums;
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); i += kPart) {
    sums.push_back(exponentials(logits.subspan(i, std::min(kPart, logits.size() - i)), most));
    total += sums.back();
  }
  double rest = fraction * total;
  std::size_t part = 0;
  while (part + 1 < sums.size() && rest >= sums[part]) rest -= sums[part++];
  std::int32_t token = kNoToken;  // the last one with a probability, where rounding leaves something over
  const std::size_t end = std::min(logits.size(), (part + 1) * kPart);
  for (std::size_t i = part * kPart; i < end; ++i) {
    const double value = std::exp(static_cast<double>(logits[i]) - most);
    if (value <= 0) continue;
    token = static_cast<std::int32_t>(i);
    if (rest < value) return token;
    rest -= value;
  }
  if (token != kNoToken) return token;
  return static_cast<std::int32_t>(std::find(logits.begin(), logits.end(), most) - logits.begin());
}

}  // namespace

bool process(std::span<float> logits, std::span<const std::int32_t> seen, const Sampling& sampling) {
  if (!largest(logits)) return false;
  if (sampling.repetition_penalty != 1) penalize(logits, seen, sampling.repetition_penalty);
  if (sampling.do_sample && sampling.temperature != 1) {
    const auto divisor = static_cast<float>(sampling.temperature);
    for (float& logit : logits) logit /= divisor;
  }
  if (!largest(logits)) return false;
  if (!sampling.do_sample) return true;
  if (sampling.top_k > 0) keep_top_k(logits, std::max(sampling.top_k, sampling.min_kept));
  if (sampling.top_p < 1) keep_top_p(logits, sampling.top_p, sampling.min_kept);
  if (sampling.min_p > 0) keep_min_p(logits, sampling.min_p, sampling.min_kept);
  return true;
}

std::int32_t choose(std::span<const float> processed, const Sampling& sampling, const Place& place) {
  const std::optional<float> most = largest(processed);
  if (!most) return kNoToken;
  if (sampling.do_sample) return draw(processed, *most, uniform(place));
  return static_cast<std::int32_t>(std::find(processed.begin(), processed.end(), *most) - processed.begin());
}

float log_probability(std::span<const float> logits, std::int32_t token) {
  const std::optional<float> most = largest(logits);
  if (!most || token < 0 || static_cast<std::size_t>(token) >= logits.size()) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  const double logit = logits[static_cast<std::size_t>(token)];
  return static_cast<float>(logit - *most - std::log(exponentials(logits, *most)));
}

double uniform(const Place& place) {
  const auto step = static_cast<std::uint64_t>(place.step), sequence = static_cast<std::uint64_t>(place.sequence);
  const auto words = philox({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32U),
                             static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32U)},
                            place.seed);
  const std::uint64_t bits = std::uint64_t{words[1]} << 32U | words[0];
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

}  // namespace components::generation
