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

/// How a trial's run stands, or how its process ended.
struct Outcome {
  enum class Kind {
    kComplete,
    kInterrupted,  ///< it saved and can go on, or found no room on the disk
    kNan,
    kMemory,
    kCrash,  ///< killed, or left without a word; it can go on
    kHang,   ///< killed by its worker, since it made no progress; it can go on
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

/// The run of that folder as it stands, nothing before it was begun.
std::optional<store::RunSummary> look_at_run(const std::string& run_dir, const core::Clock& clock);

/// The same with what its objectives came to on the way. `light`: where it may have been written; null: nowhere here.
std::optional<store::RunRecord> look_at_curves(const std::string& run_dir, const std::vector<Metric>& objectives,
                                               const core::Clock& clock, store::InMemoryRun* light = nullptr);

/// The newest run of that name below `output_dir`, nothing before the first one was begun.
std::optional<store::RunSummary> find_trial_run(const std::string& output_dir, const std::string& run_name,
                                                const core::Clock& clock);

/// The points that a run has on record; none where it has none yet.
std::vector<store::SeriesPoint> read_curve(const std::string& run_dir, const std::string& metric);

/// The point of a curve that counts; nothing when there is none.
std::optional<store::SeriesPoint> point_that_counts(const std::vector<store::SeriesPoint>& curve, const Metric& metric);

/// `status` is the exit status of the process, or what it would have been: judged from the run where nobody saw it.
/// `words`: the error that it printed. `objectives`: at least one; the curve is that of the first.
Outcome judge(const std::optional<store::RunRecord>& run, int status, const std::string& words,
              const std::vector<Metric>& objectives);

/// Of a run that has ended under nobody's eyes; nothing while it can go on.
std::optional<int> status_of(const store::RunSummary& run);

}  // namespace runner::sweep
