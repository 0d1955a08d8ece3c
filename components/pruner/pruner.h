#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runner/core/node.h"

namespace components::pruner {

/// What a trial reported of its metric: the smaller the better, whatever the goal of the sweep.
struct Report {
  std::int64_t step = 0;
  double value = 0;  ///< may be NaN
};

struct Curve {
  std::int64_t trial = 0;
  bool complete = false;        ///< it came to its end
  std::vector<Report> reports;  ///< by rising step
};

/// Says which trials are not worth going on with: a function of the curves alone, so that it says the same of a sweep
/// that was interrupted.
class Pruner {
 public:
  virtual ~Pruner() = default;

  /// Whether the trial is given up at the last of its reports. `others` is what is on record of all other trials.
  virtual bool gives_up(const Curve& mine, const std::vector<Curve>& others) const = 0;
  /// Whether a trial that was given up is judged again by what others have reported since, and goes on where it would
  /// not be given up any more.
  virtual bool promotes() const { return false; }
};

struct Inputs {
  bool maximize = false;                    ///< reports have the opposite sign of the metric
  std::optional<std::int64_t> total_steps;  ///< of a trial, where the recipe says
};

std::shared_ptr<Pruner> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::pruner
