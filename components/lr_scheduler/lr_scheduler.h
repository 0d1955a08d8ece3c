#pragma once

#include <cstdint>
#include <memory>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace components::lr_scheduler {

/// A schedule as a pure function: the factor of the base learning rate at each scheduler step.
class Scheduler : public runner::core::Stateful {
 public:
  /// step >= 0; step 0 is what the first optimizer step uses.
  virtual double factor(std::int64_t step) const = 0;
};

struct Inputs {
  runner::core::Diagnostics* diagnostics =
      nullptr;  ///< gets what is wrong, with its place; RunError where there is none
};

/// Null when `diagnostics` got errors.
std::shared_ptr<Scheduler> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::lr_scheduler
