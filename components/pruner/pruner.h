#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "runner/core/node.h"

namespace components::pruner {

/// A trial's report of its metric: smaller is better, whatever the goal of the sweep.
struct Report {
  std::int64_t step = 0;
  double value = 0;  ///< may be NaN
};

struct Curve {
  enum class State {
    kOpen,
    kComplete,  ///< it completed
    kPruned,    ///< at the last of its reports
  };
  std::int64_t trial = 0;
  State state = State::kOpen;
  std::vector<Report> reports;  ///< by rising step
};

/// A pruned trial and its last report. In the order in which trials resume: the furthest first, then the best.
struct PrunedTrial {
  std::int64_t step = 0;
  double value = 0;  ///< infinity for NaN
  std::int64_t trial = 0;

  bool operator<(const PrunedTrial& other) const {
    return std::tuple(-step, value, trial) < std::tuple(-other.step, other.value, other.trial);
  }
};

/// Decides which trials to prune: a function of the recorded curves only, in any order, so that an interrupted sweep
/// decides the same. It keeps what it compares with sorted, so that a decision is cheap however many trials there are.
class Pruner {
 public:
  virtual ~Pruner() = default;

  /// Records the state of a trial, replacing its earlier record; ignores an open trial without reports.
  virtual void record(const Curve&) {}
  /// Whether to prune the trial at its last report, by the records of all others: it is not on record itself.
  virtual bool should_prune(const Curve& mine) const = 0;
  /// Whether a pruned trial is judged again after later reports of others, and resumes if it would no longer be pruned.
  virtual bool promotes() const { return false; }
  /// The first recorded trial that would resume that way; nothing if there is none.
  virtual std::optional<PrunedTrial> promoted() const { return std::nullopt; }
};

struct Inputs {
  bool maximize = false;                    ///< reports have the opposite sign of the metric
  std::optional<std::int64_t> total_steps;  ///< of a trial, where the recipe says
};

/// With an empty record.
std::shared_ptr<Pruner> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::pruner
