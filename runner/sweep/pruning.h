#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runner/store/run_reader.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

/// Reports of running trials, by number.
using LiveCurves = std::map<std::int64_t, std::vector<store::SeriesPoint>>;

/// Which trials of a study are pruned, and which of these resume: a function of the records and the reports of running
/// trials, in any order of queries. Reads only what changed since the last query. Borrows the sweep and the study.
class Pruning {
 public:
  Pruning(const Sweep& sweep, Study& study);

  /// Replaces the reports of running trials.
  void see(const LiveCurves& live);
  /// Where a trial with this curve is pruned; nothing if it is not.
  std::optional<store::SeriesPoint> pruned_at(std::int64_t trial, const std::vector<store::SeriesPoint>& curve);
  /// The pruned trial to resume next: by the present records it would no longer be pruned. The furthest first, then the
  /// best. Nothing if there is none.
  std::optional<std::int64_t> promoted();

 private:
  void read_changes();
  void record_from_study(std::int64_t trial);
  void record(std::int64_t trial, components::pruner::Curve::State state, const std::vector<store::SeriesPoint>& curve);

  const Sweep& sweep_;
  Study& study_;
  std::shared_ptr<components::pruner::Pruner> pruner_;  ///< null without pruning
  std::size_t changes_seen_ = 0;
  LiveCurves live_;
};

}  // namespace runner::sweep
