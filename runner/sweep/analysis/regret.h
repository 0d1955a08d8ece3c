#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

/// Upper bound of how far the best variant is from the optimum, for `sweep.stop.regret_bound`.
struct Regret {
  std::int64_t complete = 0, needed = 0;   ///< variants; nothing is judged before `needed`
  std::optional<double> bound, threshold;  ///< of the metric; nothing before that

  bool is_small() const { return bound && *bound < *threshold; }
  /// `regret bound 0.0312, the sweep ends below 0.0015`.
  std::string text() const;
};

/// Judges the regret of a sweep that has the key: a function of the complete variants, recomputed only when there are
/// more.
class RegretMonitor {
 public:
  /// Borrows the sweep.
  explicit RegretMonitor(const Sweep& sweep) : sweep_(sweep) {}

  /// `variants` and `trials` must belong to the same study in every call.
  const Regret& look_at(const std::vector<Variant>& variants, const std::vector<Trial>& trials);

 private:
  const Sweep& sweep_;
  std::int64_t complete_trials_ = -1;  ///< at the last look; before the first: none
  Regret regret_;
};

}  // namespace runner::sweep
