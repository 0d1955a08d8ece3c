#pragma once

#include <string>
#include <vector>

#include "runner/sweep/studies.h"
#include "runner/sweep/study/study_counters.h"

namespace runner::review {

/// The number of trials in each state.
struct SweepProgress {
  std::int64_t waiting = 0, running = 0, complete = 0, pruned = 0, failed = 0;
  std::optional<std::int64_t> all;     ///< total; nothing if unknown
  std::optional<double> seconds_left;  ///< at the pace so far
  std::int64_t ended() const { return complete + pruned + failed; }
};
SweepProgress progress_of(const sweep::Sweep& sweep, const sweep::StudyCounters& counters);

/// `4 of 9 done, 1 running, 2 pruned, 1 min 30 s left`.
std::string progress_text(const SweepProgress& progress);

/// `best 0.0612  optimizer.lr=0.01`: a line for the best variant, or for each on the Pareto front.
std::vector<std::string> best_lines(const sweep::Sweep& sweep, const sweep::StudyCounters& counters,
                                    const std::vector<sweep::Variant>& variants);

/// `tiny-1qezc2h  val/loss  4 of 9 done`, and the best below it.
std::string sweep_heading(const sweep::OpenSweep& open);

}  // namespace runner::review
