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

/// What trials that run have reported so far, by their numbers.
using LiveCurves = std::map<std::int64_t, std::vector<store::SeriesPoint>>;

/// Which trials of a study are given up, and which of these go on: a function of what is on record and of what trials
/// that run have reported, whoever asks and however often. What has changed since the last question is all that it
/// reads. Borrows the sweep and the study.
class Pruning {
 public:
  Pruning(const Sweep& sweep, Study& study);

  /// What trials that run have reported by now, in place of what they had at the last look.
  void see(const LiveCurves& live);
  /// Where a trial with this curve is given up; nothing where it is not.
  std::optional<store::SeriesPoint> pruned_at(std::int64_t trial, const std::vector<store::SeriesPoint>& curve);
  /// Of the trials that were given up, the one that goes on next: by what is on record now it would not be given up
  /// where it was. The one that came furthest, then the best one. Nothing where there is none.
  std::optional<std::int64_t> promoted();

 private:
  void read_changes();
  void put_as_recorded(std::int64_t trial);
  void put(std::int64_t trial, components::pruner::Curve::State state, const std::vector<store::SeriesPoint>& curve);

  const Sweep& sweep_;
  Study& study_;
  std::shared_ptr<components::pruner::Pruner> pruner_;  ///< null where no trial is given up
  std::size_t changes_seen_ = 0;
  LiveCurves live_;
};

}  // namespace runner::sweep
