#include "runner/train/lr_finder.h"

#include <memory>

#include "generated/section/init_from.h"
#include "runner/checkpoint/adapter_weights.h"
#include "runner/checkpoint/init_from.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/reference/reference.h"
#include "runner/train/step/stepper.h"
#include "runner/train/strategy/make_strategy.h"
#include "runner/train/train.h"

namespace runner::train {
namespace {

constexpr std::int64_t kOverflowsMax = 200;

/// Replaces the schedule.
class Climb final : public components::lr_scheduler::Scheduler {
 public:
  Climb(const LrRangeRequest& request, double base_lr) : request_(request), base_lr_(base_lr) {}
  double factor(std::int64_t step) const override { return lr_at(request_, step) / base_lr_; }

 private:
  LrRangeRequest request_;
  double base_lr_;
};

}  // namespace

std::optional<LrRangeTest> find_lr(const resolve::Recipe& recipe, const LrRangeRequest& request,
                                   core::Diagnostics& diagnostics) {
  configure_torch(recipe);
  prepare_device(recipe);
  const auto experiment = build_experiment(recipe, {.make_strategy = make_lone_strategy}, diagnostics);
  if (experiment == nullptr) return std::nullopt;
  if (recipe.base_lr == 0.0) {
    diagnostics.error(recipe.location("optimizer.lr"),
                      "optimizer.lr is 0, so the ratios of groups with their own rate are undefined",
                      "set any other rate: the range test replaces it");
    return std::nullopt;
  }
  const auto init = checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root,
                                               *experiment->model, recipe.output_dir, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  if (init) checkpoint::load_init_weights(*init, *experiment->model, weight_access(*experiment));
  checkpoint::load_adapters(recipe.adapters, experiment->adapters, *experiment->model, recipe.model);
  if (needs_reference(*experiment)) prepare_reference(*experiment, {});
  experiment->scheduler = std::make_shared<Climb>(request, recipe.base_lr);
  experiment->weight_average.reset();
  StepperOptions options = stepper_options(experiment->recipe);
  options.schedule = {};  // one rate per step, regardless of the recipe's schedule
  Stepper stepper(*experiment, options);
  LrRecorder recorder(request);
  std::int64_t overflows = 0;  // float16 overflows: skipped steps, which lower the scale
  while (stepper.progress().step < request.steps && overflows < kOverflowsMax) {
    const double lr = lr_at(request, stepper.progress().step);
    const StepResult result = stepper.step(false);
    if (result.overflowed) {
      ++overflows;
    } else if (!recorder.add(lr, result.loss)) {
      break;
    }
  }
  return recorder.take();
}

}  // namespace runner::train
