#include "runner/train/step/pass_runner.h"

#include "generated/section/compile.h"
#include "runner/core/error.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/step_wait.h"
#include "runner/train/step/captured_passes.h"
#include "runner/train/step/plain_passes.h"
#include "runner/train/step/queued_passes.h"
#include "runner/train/step/second_passes.h"

namespace runner::train {

StepFigures PassRunner::enqueue(bool, StepResult&, bool&) {
  core::assertion_failed("can_enqueue()", "the device decides by itself whether a step is made", __FILE__, __LINE__);
}

std::unique_ptr<PassRunner> make_pass_runner(const PassRunner::Parts& parts) {
  const Experiment& experiment = parts.experiment;
  const bool stays = parts.strategy.stays_on_device(), waits = !stays || !step_wait_reason(experiment).empty();
  if (experiment.new_graph && experiment.recipe.compile->cuda_graphs) {
    RUNNER_ASSERT(!waits, "a recipe whose steps wait for the device is refused");
    return std::make_unique<CapturedPasses>(parts);
  }
  RUNNER_ASSERT(!stays || !parts.strategy.needs_second_pass(), "no second pass is queued");
  if (stays) return std::make_unique<QueuedPasses>(parts, !waits);
  if (parts.strategy.needs_second_pass()) return std::make_unique<SecondPasses>(parts);
  return std::make_unique<PlainPasses>(parts);
}

}  // namespace runner::train
