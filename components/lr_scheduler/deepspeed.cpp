#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/deepspeed.h"  // Config; declares make()

namespace components::lr_scheduler::deepspeed {
namespace {

class Deepspeed final : public Scheduler {
 public:
  explicit Deepspeed(const Config& config)
      : config_(config), warmup_(static_cast<double>(std::max<std::int64_t>(2, config.warmup_steps))) {}

  double factor(std::int64_t step) const override {
    const auto now = static_cast<double>(step);
    const double floor = config_.warmup_min_ratio;
    if (now < warmup_) {
      const bool linear = config_.warmup_type == WarmupType::kLinear;
      return floor + (1.0 - floor) * (linear ? now / warmup_ : std::log(now + 1.0) / std::log(warmup_));
    }
    if (config_.decay == Decay::kConstant) return 1.0;
    const double left = static_cast<double>(config_.total_steps) - warmup_;
    if (config_.decay == Decay::kLinear) {
      const double total = static_cast<double>(config_.total_steps);
      return floor + (1.0 - floor) * std::max(0.0, (total - now) / std::max(1.0, left));
    }
    // The cosine is a step ahead, and climbs again after its end.
    const double wave = 0.5 * (1.0 + std::cos(std::numbers::pi * (now - warmup_ + 1.0) / left));
    return std::max(0.0, config_.cos_min_ratio + (1.0 - config_.cos_min_ratio) * wave);
  }

 private:
  Config config_;
  double warmup_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<Deepspeed>(config); }

}  // namespace components::lr_scheduler::deepspeed
