#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace components::generation {

/// How several beginnings of a text are continued side by side, and the best texts chosen of them.
struct BeamOptions {
  /// When the search of a prompt ends: as soon as as many texts as beams are done; or also where the best beam, as long
  /// as it is now, cannot become better than the worst of them; or, with `kNever`, as long as it can become.
  enum class Stopping { kEstimate, kFull, kNever };

  std::int64_t count = 1;     ///< beams of a prompt; 1: no search
  double length_penalty = 1;  ///< a text's log-probability is divided by its length to this power
  Stopping stopping = Stopping::kEstimate;
  std::int64_t returned = 1;  ///< texts of a prompt, at most `count`
};

/// A beginning of a text, or one that is done.
struct Beam {
  std::vector<std::int32_t> tokens;      ///< new ones
  std::vector<float> log_probabilities;  ///< one for each, as the model gave them, where they are asked for
  float score = 0;                       ///< sum of processed log-probabilities; of a text that is done divided
  std::size_t parent = 0;                ///< which of the running ones before it continues
};

/// The search of one prompt, without the model. Begins with one running beam that has no token.
///
/// Source  Transformers 5, GenerationMixin._beam_search. Where fewer continuations have a probability than it keeps, it
///         fills up with copies of such beams, which are left out here.
class BeamSearch {
 public:
  struct Limits {
    std::int64_t max_new_tokens = 1;
    std::span<const std::int32_t> end_ids;  ///< outlive the search
  };
  /// What is drawn, with `do_sample`, depends on these alone.
  struct Draw {
    bool do_sample = false;
    std::uint64_t seed = 0;
    std::int64_t sequence = 0;
  };
  /// Of the running beams, one row each.
  struct Scores {
    std::span<float> processed;       ///< log-probabilities [beams, V], -inf for what is left out; changed here
    std::span<const float> of_model;  ///< the same as the model gave them; empty: not asked for
  };
  /// Whether a text of these new tokens ends by what it says.
  using Ends = std::function<bool(std::span<const std::int32_t>)>;

  BeamSearch(const BeamOptions& options, const Limits& limits, const Draw& draw);

  /// Best first; all have the same length.
  const std::vector<Beam>& running() const { return running_; }
  /// Best first, at most `count`. Texts that are done.
  const std::vector<Beam>& finished() const { return finished_; }
  bool done() const { return done_; }

  /// Takes each running beam's next token, and puts the best continuations in their place.
  void advance(const Scores& scores, const Ends& ends);

 private:
  struct Candidate {
    float score;
    std::size_t place;  ///< in [beams, V]
  };

  std::size_t kept() const;
  std::vector<Candidate> best_of(std::span<const float> sums) const;
  std::vector<Candidate> drawn_of(std::span<float> sums) const;
  Beam continued(const Candidate& candidate, const Scores& scores) const;
  void finish(Beam beam);
  bool may_improve() const;
  float divided(float score, std::int64_t length) const;

  BeamOptions options_;
  Limits limits_;
  Draw draw_;
  std::int64_t made_ = 0;  // tokens of each running beam
  bool done_ = false;
  std::vector<Beam> running_, finished_;
};

}  // namespace components::generation
