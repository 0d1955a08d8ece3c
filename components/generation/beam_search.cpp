#include "components/generation/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "components/generation/sampling.h"

namespace components::generation {
namespace {

constexpr float kLeftOut = -std::numeric_limits<float>::infinity();

}  // namespace

BeamSearch::BeamSearch(const BeamOptions& options, const Limits& limits, const Draw& draw)
    : options_(options), limits_(limits), draw_(draw), running_(1) {}

void BeamSearch::advance(const Scores& scores, const Ends& ends) {
  const std::size_t vocabulary = scores.processed.size() / running_.size();
  for (std::size_t i = 0; i < scores.processed.size(); ++i) scores.processed[i] += running_[i / vocabulary].score;
  const std::vector<Candidate> candidates =
      draw_.do_sample ? drawn_of(scores.processed) : best_of(std::as_const(scores.processed));
  ++made_;
  const auto count = static_cast<std::size_t>(options_.count);
  std::vector<Beam> next;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i >= count && next.size() == count) break;
    Beam beam = continued(candidates[i], scores);
    const bool is_end =
        std::find(limits_.end_ids.begin(), limits_.end_ids.end(), beam.tokens.back()) != limits_.end_ids.end();
    if (!is_end && made_ < limits_.max_new_tokens && !ends(beam.tokens)) {
      if (next.size() < count) next.push_back(std::move(beam));
    } else if (i < count) {  // the others are there so that enough beams go on
      finish(std::move(beam));
    }
  }
  running_ = std::move(next);
  done_ = running_.empty() || !may_improve();
}

/// Number of continuations of which as many as there are beams do not end with an end token.
std::size_t BeamSearch::kept() const {
  return std::max<std::size_t>(2, 1 + limits_.end_ids.size()) * static_cast<std::size_t>(options_.count);
}

/// Of equal ones those that come first.
std::vector<BeamSearch::Candidate> BeamSearch::best_of(std::span<const float> sums) const {
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.place < b.place;
  };
  std::vector<Candidate> best;  // a heap with the worst in front
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == kLeftOut) continue;
    if (best.size() == kept()) {
      if (sums[i] <= best.front().score) continue;
      std::pop_heap(best.begin(), best.end(), better);
      best.pop_back();
    }
    best.push_back({sums[i], i});
    std::push_heap(best.begin(), best.end(), better);
  }
  std::sort_heap(best.begin(), best.end(), better);
  return best;
}

/// Without putting any back. What was drawn is left out of `sums`.
std::vector<BeamSearch::Candidate> BeamSearch::drawn_of(std::span<float> sums) const {
  std::vector<Candidate> drawn;
  for (std::size_t i = 0; i < kept(); ++i) {
    const auto step = made_ * static_cast<std::int64_t>(kept()) + static_cast<std::int64_t>(i);
    const std::int32_t place = choose(sums, {.do_sample = true}, {draw_.seed, draw_.sequence, step});
    if (place == kNoToken) break;
    drawn.push_back({sums[static_cast<std::size_t>(place)], static_cast<std::size_t>(place)});
    sums[static_cast<std::size_t>(place)] = kLeftOut;
  }
  std::stable_sort(drawn.begin(), drawn.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  return drawn;
}

Beam BeamSearch::continued(const Candidate& candidate, const Scores& scores) const {
  const std::size_t vocabulary = scores.processed.size() / running_.size();
  const std::size_t parent = candidate.place / vocabulary;
  Beam beam = running_[parent];
  beam.parent = parent;
  beam.score = candidate.score;
  beam.tokens.push_back(static_cast<std::int32_t>(candidate.place % vocabulary));
  if (!scores.of_model.empty()) beam.log_probabilities.push_back(scores.of_model[candidate.place]);
  return beam;
}

void BeamSearch::finish(Beam beam) {
  beam.score = divided(beam.score, made_);
  const auto worse =
      std::find_if(finished_.begin(), finished_.end(), [&beam](const Beam& other) { return other.score < beam.score; });
  finished_.insert(worse, std::move(beam));
  if (finished_.size() > static_cast<std::size_t>(options_.count)) finished_.pop_back();
}

bool BeamSearch::may_improve() const {
  if (finished_.size() < static_cast<std::size_t>(options_.count)) return true;
  if (options_.stopping == BeamOptions::Stopping::kFull) return false;
  const bool grows = options_.stopping == BeamOptions::Stopping::kNever && options_.length_penalty > 0;
  return divided(running_.front().score, grows ? limits_.max_new_tokens : made_) > finished_.back().score;
}

float BeamSearch::divided(float score, std::int64_t length) const {
  return score / static_cast<float>(std::pow(static_cast<double>(length), options_.length_penalty));
}

}  // namespace components::generation
