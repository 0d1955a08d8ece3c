#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "components/lr_scheduler/lr_scheduler.h"
#include "components/lr_scheduler/warmup.h"
#include "generated/lr_scheduler/wsd.h"  // Config; declares make()

namespace components::lr_scheduler::wsd {
namespace {

class Wsd final : public Scheduler {
 public:
  explicit Wsd(const Config& config)
      : config_(config), warmup_(Warmup::of(config.warmup_steps, config.warmup_ratio, config.total_steps)) {}

  double factor(std::int64_t step) const override {
    if (warmup_.covers(step)) return warmup_.factor(step);
    const auto total = static_cast<double>(config_.total_steps);
    const double length = std::ceil(config_.decay_ratio * total);
    const double progress = std::clamp((static_cast<double>(step) - (total - length)) / length, 0.0, 1.0);
    return config_.min_lr_ratio + (1.0 - config_.min_lr_ratio) * shape(progress);
  }

 private:
  double shape(double progress) const {
    switch (config_.decay) {
      case Decay::kLinear: return 1.0 - progress;
      case Decay::kCosine: return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
      case Decay::kSqrt: return 1.0 - std::sqrt(progress);
    }
    return 1.0;
  }

  Config config_;
  Warmup warmup_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<Wsd>(config); }

}  // namespace components::lr_scheduler::wsd
