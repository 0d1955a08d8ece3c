#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/one_cycle.h"  // Config; declares make()

namespace components::lr_scheduler::one_cycle {
namespace {

class OneCycle final : public Scheduler {
 public:
  explicit OneCycle(const Config& config) : config_(config) {}

  double factor(std::int64_t step) const override {
    const auto total = static_cast<double>(config_.total_steps);
    const double first = 1.0 / config_.div_factor, last = first / config_.final_div_factor;
    const double peak = config_.pct_start * total - 1.0;
    // torch takes one step past the cycle's end, along the same curve, and no more.
    const double now = std::min(static_cast<double>(step), total);
    if (now <= peak) return between(first, 1.0, now, 0.0, peak);
    if (!config_.three_phase) return std::max(0.0, between(1.0, last, now, peak, total - 1.0));
    const double back = 2.0 * config_.pct_start * total - 2.0;
    if (now <= back) return between(1.0, first, now, peak, back);
    return std::max(0.0, between(first, last, now, back, total - 1.0));
  }

 private:
  double between(double from, double to, double now, double begin, double end) const {
    const double progress = end > begin ? (now - begin) / (end - begin) : 1.0;
    if (config_.anneal_strategy == AnnealStrategy::kLinear) return from + (to - from) * progress;
    return to + (from - to) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }

  Config config_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<OneCycle>(config); }

}  // namespace components::lr_scheduler::one_cycle
