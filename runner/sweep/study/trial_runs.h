#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runner/core/clock.h"
#include "runner/store/run_reader.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

/// The runs of a study's trials, for frequent polling of running ones. It searches thousands of folders for new ones at
/// most twice a second; find_trial_run does at each call. Borrows the study and the clock.
class TrialRuns {
 public:
  TrialRuns(const Study& study, std::string output_dir, const core::Clock& clock)
      : study_(study), output_dir_(std::move(output_dir)), clock_(clock) {}

  /// The state of a trial's newest run; nothing before it started, or in its first half second.
  std::optional<store::RunSummary> find(std::int64_t trial);

 private:
  void list_folders();

  const Study& study_;
  std::string output_dir_;
  const core::Clock& clock_;
  std::optional<std::int64_t> listed_ns_;
  std::map<std::int64_t, std::string> newest_;  ///< names of folders, by trial
};

}  // namespace runner::sweep
