#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/review/runs.h"
#include "runner/sweep/studies.h"
#include "runner/sweep/study/study_counters.h"
#include "runner/sweep/study/trial_runs.h"
#include "runner/sweep/study/variant_summary.h"
#include "runner/terminal/live_lines.h"

namespace runner::review {

/// The progress of a sweep in a few lines: trials done, the best, and the running trials.
class SweepBoard {
 public:
  SweepBoard(const sweep::Sweep& sweep, sweep::Study& study, const core::Clock& clock)
      : sweep_(sweep),
        study_(study),
        clock_(clock),
        counters_(sweep),
        runs_(study, sweep::output_dir_of(sweep, study), clock) {}

  /// At most `rows` lines, none wider than the terminal.
  std::vector<std::string> lines(const terminal::Terminal& terminal, std::size_t rows);

 private:
  struct Seen {
    std::int64_t step, at_ns;
  };
  std::vector<terminal::Cell> row_of(const sweep::Trial& trial, const sweep::Variant& variant);
  std::optional<double> step_rate(std::int64_t trial, std::int64_t step);

  const sweep::Sweep& sweep_;
  sweep::Study& study_;
  const core::Clock& clock_;
  sweep::StudyCounters counters_;
  sweep::TrialRuns runs_;
  std::map<std::int64_t, Seen> first_seen_;  ///< by running trial: its step when it was first seen
};

/// The board at the bottom of standard error while a worker runs; only log lines without a terminal or with `quiet`.
class SweepLive {
 public:
  /// `quiet`: draws nothing. `color`: of the terminal.
  SweepLive(bool quiet, bool color, const sweep::Sweep& sweep, sweep::Study& study, const core::Clock& clock);
  ~SweepLive() { clear(); }

  /// Updates the board, at a readable rate.
  void look();
  /// Logs a line above it.
  void say(const std::string& line);
  void warn(const std::string& line);
  void clear() { lines_.clear(); }

 private:
  bool wanted_;
  terminal::Terminal terminal_;
  SweepBoard board_;
  terminal::LiveLines lines_;
  const core::Clock& clock_;
  std::int64_t next_ns_ = 0;
};

/// `roux sweep show --watch`: until the sweep is over. Without a terminal prints a line for each change.
void watch_sweep(const sweep::OpenSweep& open, const RunsContext& context);

}  // namespace runner::review
