#include <cmath>
#include <memory>
#include <numbers>

#include "components/lr_scheduler/lr_scheduler.h"
#include "components/lr_scheduler/warmup.h"
#include "generated/lr_scheduler/cosine_with_restarts.h"  // Config; declares make()

namespace components::lr_scheduler::cosine_with_restarts {
namespace {

class CosineWithRestarts final : public Scheduler {
 public:
  explicit CosineWithRestarts(const Config& config)
      : config_(config), warmup_(Warmup::of(config.warmup_steps, config.warmup_ratio, config.total_steps)) {}

  double factor(std::int64_t step) const override {
    if (warmup_.covers(step)) return warmup_.factor(step);
    const double progress = warmup_.progress(step, config_.total_steps);
    if (progress >= 1.0) return 0.0;
    return 0.5 * (1.0 + std::cos(std::numbers::pi * std::fmod(config_.num_cycles * progress, 1.0)));
  }

 private:
  Config config_;
  Warmup warmup_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) {
  return std::make_shared<CosineWithRestarts>(config);
}

}  // namespace components::lr_scheduler::cosine_with_restarts
