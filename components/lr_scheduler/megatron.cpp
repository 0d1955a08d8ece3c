#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/megatron.h"  // Config; declares make()

namespace components::lr_scheduler::megatron {
namespace {

/// Megatron counts in samples; every step has the same number of them, so that it cancels but in one place.
class Megatron final : public Scheduler {
 public:
  explicit Megatron(const Config& config)
      : config_(config),
        total_(static_cast<double>(config.total_steps)),
        warmup_(config.warmup_ratio ? *config.warmup_ratio * total_ : static_cast<double>(config.warmup_steps)) {}

  double factor(std::int64_t step) const override {
    const auto now = static_cast<double>(step);
    if (warmup_ > 0 && now <= warmup_) {
      return config_.init_lr_ratio + (1.0 - config_.init_lr_ratio) * now / warmup_;
    }
    if (config_.decay_style == DecayStyle::kConstant) return 1.0;
    if (now > total_) return config_.min_lr_ratio;
    if (config_.decay_style == DecayStyle::kInverseSquareRoot) {
      const auto samples = static_cast<double>(config_.samples_per_step);
      return std::max(config_.min_lr_ratio,
                      std::sqrt(std::max(warmup_ * samples, 1.0)) / std::sqrt(std::max(now * samples, 1.0)));
    }
    const double progress = (now - warmup_) / (total_ - warmup_);
    const double left = config_.decay_style == DecayStyle::kLinear
                            ? 1.0 - progress
                            : 0.5 * (std::cos(std::numbers::pi * progress) + 1.0);
    return config_.min_lr_ratio + (1.0 - config_.min_lr_ratio) * left;
  }

 private:
  Config config_;
  double total_, warmup_;  // steps; the warm-up need not be whole
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<Megatron>(config); }

}  // namespace components::lr_scheduler::megatron
