#include <memory>

#include "components/lr_scheduler/lr_scheduler.h"
#include "components/lr_scheduler/warmup.h"
#include "generated/lr_scheduler/constant.h"  // Config; declares make()
#include "runner/core/error.h"

namespace components::lr_scheduler::constant {
namespace {

class Constant final : public Scheduler {
 public:
  explicit Constant(Warmup warmup) : warmup_(warmup) {}

  double factor(std::int64_t step) const override { return warmup_.covers(step) ? warmup_.factor(step) : 1.0; }

 private:
  Warmup warmup_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) {
  if (config.warmup_ratio && !config.total_steps) {
    throw runner::core::RunError("lr_scheduler.warmup_ratio is a fraction of total_steps, which is unknown",
                                 "set lr_scheduler.total_steps, training.max_steps, or warmup_steps instead",
                                 runner::core::kExitUsage);
  }
  return std::make_shared<Constant>(
      Warmup::of(config.warmup_steps, config.warmup_ratio, config.total_steps.value_or(0)));
}

}  // namespace components::lr_scheduler::constant
