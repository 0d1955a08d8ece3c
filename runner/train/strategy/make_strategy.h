#pragma once

#include <cstddef>
#include <memory>

#include "components/tensor/tensors.h"
#include "runner/train/strategy/gradient_strategy.h"

namespace runner::train {

struct Experiment;
struct StepperOptions;

/// What a strategy is made of. All of it lives longer.
struct StrategyInputs {
  Experiment& experiment;
  const components::NamedTensors& parameters;
  const StepperOptions& options;
  std::size_t notes = 0;  ///< numbers that each rank tells with every step
};

/// The one that the recipe, the optimizer and the number of processes ask for, or the experiment's own.
std::unique_ptr<GradientStrategy> make_strategy(const StrategyInputs& inputs);

}  // namespace runner::train
