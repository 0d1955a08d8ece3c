#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "components/lr_scheduler/lr_scheduler.h"
#include "components/lr_scheduler/warmup.h"
#include "generated/lr_scheduler/cosine.h"  // Config; declares make()

namespace components::lr_scheduler::cosine {
namespace {

class Cosine final : public Scheduler {
 public:
  explicit Cosine(const Config& config)
      : config_(config), warmup_(Warmup::of(config.warmup_steps, config.warmup_ratio, config.total_steps)) {}

  double factor(std::int64_t step) const override {
    if (warmup_.covers(step)) return warmup_.factor(step);
    double progress = warmup_.progress(step, config_.total_steps);
    if (config_.hold_floor) progress = std::min(progress, 1.0);
    const double wave = 0.5 * (1.0 + std::cos(2.0 * std::numbers::pi * config_.num_cycles * progress));
    return config_.min_lr_ratio + (1.0 - config_.min_lr_ratio) * wave;
  }

 private:
  Config config_;
  Warmup warmup_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<Cosine>(config); }

}  // namespace components::lr_scheduler::cosine
