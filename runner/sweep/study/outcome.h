#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/store/in_memory_run.h"
#include "runner/store/run_files.h"
#include "runner/sweep/spec/metric.h"

namespace runner::sweep {

/// The state of a trial's run, or how its process ended.
struct Outcome {
  enum class Kind {
    kComplete,
    kInterrupted,  ///< it saved and is resumable, or the disk was full
    kNan,
    kMemory,
    kCrash,  ///< killed, or exited without a record; resumable
    kHang,   ///< killed by its worker for lack of progress; resumable
    kRecipe,
    kOther,
  };
  Kind kind = Kind::kOther;
  std::optional<double> value;      ///< of the first objective
  std::vector<double> others = {};  ///< of the further ones; empty while `value` is
  std::int64_t step = 0;
  std::string reason;
  std::vector<store::SeriesPoint> curve;
};

/// The state of the run in that folder; nothing before it started.
std::optional<store::RunSummary> read_trial_run(const std::string& run_dir, const core::Clock& clock);

/// The same with the values of its objectives. `light`: memory that may hold the run; null: none.
std::optional<store::RunRecord> read_trial_record(const std::string& run_dir, const std::vector<Metric>& objectives,
                                                  const core::Clock& clock, store::InMemoryRun* light = nullptr);

/// The newest run of that name below `output_dir`; nothing before the first one started.
std::optional<store::RunSummary> find_trial_run(const std::string& output_dir, const std::string& run_name,
                                                const core::Clock& clock);

/// The recorded points of a run; may be empty.
std::vector<store::SeriesPoint> read_curve(const std::string& run_dir, const std::string& metric);

/// The point of a curve that counts; nothing when there is none.
std::optional<store::SeriesPoint> point_that_counts(const std::vector<store::SeriesPoint>& curve, const Metric& metric);

/// What counts of a trial that was pruned at the last point of its curve: the same as of a complete one, up to there.
/// One that ended in nan or infinity has that, as such trials are avoided.
std::optional<double> value_of_pruned(const std::vector<store::SeriesPoint>& curve, const Metric& metric);

/// `status` is the exit status of the process, or inferred from the run if it was not seen. `words`: the error that it
/// printed. `objectives`: at least one; the curve is that of the first.
Outcome classify(const std::optional<store::RunRecord>& run, int status, const std::string& words,
                 const std::vector<Metric>& objectives);

/// Of a run that ended unobserved; nothing while it is resumable.
std::optional<int> status_of(const store::RunSummary& run);

}  // namespace runner::sweep
