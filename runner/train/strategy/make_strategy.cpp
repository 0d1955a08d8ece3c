#include "runner/train/strategy/make_strategy.h"

#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/strategy/ddp.h"
#include "runner/train/strategy/local_steps.h"
#include "runner/train/strategy/single.h"
#include "runner/train/strategy/step_in_backward.h"

namespace runner::train {

std::unique_ptr<GradientStrategy> make_strategy(const StrategyInputs& inputs) {
  const Experiment& experiment = inputs.experiment;
  if (experiment.make_strategy) return experiment.make_strategy(inputs);
  const bool in_backward = experiment.optimizer->steps_in_backward();
  if (experiment.ranks != nullptr && inputs.options.ddp.local_steps > 0) {
    if (in_backward) return std::make_unique<LocalSteps<StepInBackward>>(inputs);
    return std::make_unique<LocalSteps<Ddp>>(inputs);
  }
  if (in_backward) return std::make_unique<StepInBackward>(inputs);
  if (experiment.ranks != nullptr) return std::make_unique<Ddp>(inputs);
  return std::make_unique<Single>(inputs);
}

}  // namespace runner::train
