#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace components::lr_scheduler {

/// A schedule: the factor of the base learning rate at each scheduler step, a pure function of the step and of the
/// results of evaluations so far.
class Scheduler : public runner::core::Stateful {
 public:
  /// step >= 0; step 0 is what the first optimizer step uses.
  virtual double factor(std::int64_t step) const = 0;
  /// The momentum at a step, for schedules that change it, too; nothing: the optimizer's own.
  virtual std::optional<double> momentum(std::int64_t) const { return std::nullopt; }
  virtual bool schedules_momentum() const { return false; }
  /// After an evaluation: `metric` returns a metric's latest value by name, null when there is none yet.
  virtual void on_evaluation(const std::function<const double*(const std::string&)>& /*metric*/) {}
};

struct Inputs {
  runner::core::Diagnostics* diagnostics = nullptr;  ///< gets errors with their location; RunError if null
  /// All metric names that the recipe can produce, to check `monitor`; null: not checked.
  const std::vector<std::string>* metric_names = nullptr;
  runner::core::Location location = {};  ///< of `monitor`, or of the block
};

/// Null when `diagnostics` got errors.
std::shared_ptr<Scheduler> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::lr_scheduler
