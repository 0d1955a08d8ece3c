#pragma once

#include <cstdint>
#include <span>

namespace components::generation {

/// How the next token is chosen. The defaults change nothing: the token with the largest logit.
struct Sampling {
  bool do_sample = false;         ///< draw; without it only `repetition_penalty` counts
  double temperature = 1;         ///< > 0
  std::int64_t top_k = 0;         ///< 0: all
  double top_p = 1, min_p = 0;    ///< in [0, 1]
  double repetition_penalty = 1;  ///< > 0
  std::int64_t min_kept = 1;      ///< most probable tokens that top_k, top_p and min_p leave, however few they ask for
};

/// Changes the logits of one place in the text, in place: the penalty for each id that is among `seen` (prompt and
/// generated ids, without padding), once however often it is there; then, with `do_sample`, temperature, top_k, top_p
/// and min_p. What is left out becomes -inf; the `min_kept` most probable tokens always stay. Of equal logits top_k
/// keeps all that equal the k-th, and top_p those with the larger ids, as after a stable sort. Ids that no logit has
/// are ignored.
///
/// logits   [vocabulary]; -inf is a token that is never chosen.
/// Returns  false when a logit is NaN or inf, before or after the change, or all are -inf; choose() then finds no
/// token. Cost     O(vocabulary); nothing is sorted. Source   Transformers 5, GenerationMixin._get_logits_processor
bool process(std::span<float> logits, std::span<const std::int32_t> seen, const Sampling& sampling);

/// Identifies a draw. The random number depends on these three alone, so that a sequence does not depend on those
/// beside it.
struct Place {
  std::uint64_t seed = 0;
  std::int64_t sequence = 0;  ///< of all sequences of the seed
  std::int64_t step = 0;      ///< new tokens before this one
};

inline constexpr std::int32_t kNoToken = -1;

/// The next token, from what process() left of the logits: the first of the largest, or with `do_sample` one that is
/// drawn from their softmax. kNoToken when a logit is NaN or inf, or all are -inf.
std::int32_t choose(std::span<const float> processed, const Sampling& sampling, const Place& place);

/// Log-probability of a token: log softmax of logits that process() has not changed. NaN when the logits have none: one
/// is NaN or inf, all are -inf, or the id is not among them.
float log_probability(std::span<const float> logits, std::int32_t token);

/// In [0, 1), a multiple of 2^-53: the random number of a place.
///
/// Source  Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (Philox4x32-10)
double uniform(const Place& place);

}  // namespace components::generation
