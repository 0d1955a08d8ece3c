#pragma once

#include <cstddef>
#include <memory>

#include "components/tensor/tensors.h"
#include "runner/train/strategy/gradient_strategy.h"

namespace runner::train {

struct Experiment;
struct StepperOptions;

/// The parts of a strategy. All of them outlive it.
struct StrategyInputs {
  Experiment& experiment;
  const components::NamedTensors& parameters;
  const StepperOptions& options;
  std::size_t notes = 0;  ///< numbers that each rank sends with every step
};

/// The strategy for the recipe, the optimizer and the number of processes, or the experiment's own.
std::unique_ptr<GradientStrategy> make_strategy(const StrategyInputs& inputs);

}  // namespace runner::train
