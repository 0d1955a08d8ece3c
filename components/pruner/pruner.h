#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "runner/core/node.h"

namespace components::pruner {

/// What a trial reported of its metric: the smaller the better, whatever the goal of the sweep.
struct Report {
  std::int64_t step = 0;
  double value = 0;  ///< may be NaN
};

struct Curve {
  enum class State {
    kOpen,
    kComplete,  ///< it came to its end
    kGivenUp,   ///< at the last of its reports
  };
  std::int64_t trial = 0;
  State state = State::kOpen;
  std::vector<Report> reports;  ///< by rising step
};

/// A trial that was given up, and where. The first in this order goes on first: who came furthest, then the best.
struct GivenUp {
  std::int64_t step = 0;
  double value = 0;  ///< infinity in place of NaN
  std::int64_t trial = 0;

  bool operator<(const GivenUp& other) const {
    return std::tuple(-step, value, trial) < std::tuple(-other.step, other.value, other.trial);
  }
};

/// Says which trials are not worth going on with: a function of the curves on record alone, in whichever order they
/// were put there, so that it says the same of a sweep that was interrupted. It keeps of them what it compares with,
/// in order, so that what it says of one trial costs little however many others there are.
class Pruner {
 public:
  virtual ~Pruner() = default;

  /// Puts on record how a trial stands, in place of what was there of it: nothing of an open one without reports.
  virtual void put(const Curve&) {}
  /// Whether the trial is given up at the last of its reports, by what is on record of all others: it itself is not.
  virtual bool gives_up(const Curve& mine) const = 0;
  /// Whether a trial that was given up is judged again by what others have reported since, and goes on where it would
  /// not be given up any more.
  virtual bool promotes() const { return false; }
  /// Of those on record the first that would go on so; nothing where there is none.
  virtual std::optional<GivenUp> promoted() const { return std::nullopt; }
};

struct Inputs {
  bool maximize = false;                    ///< reports have the opposite sign of the metric
  std::optional<std::int64_t> total_steps;  ///< of a trial, where the recipe says
};

/// With nothing on record.
std::shared_ptr<Pruner> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::pruner
