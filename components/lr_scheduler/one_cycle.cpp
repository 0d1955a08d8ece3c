#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/one_cycle.h"  // Config; declares make()

namespace components::lr_scheduler::one_cycle {
namespace {

class OneCycle final : public Scheduler {
 public:
  explicit OneCycle(const Config& config) : config_(config) {}

  double factor(std::int64_t step) const override {
    const double first = 1.0 / config_.div_factor;
    return std::max(0.0, along(step, {first, 1.0, first / config_.final_div_factor}));
  }
  std::optional<double> momentum(std::int64_t step) const override {
    if (!config_.cycle_momentum) return std::nullopt;
    return along(step, {config_.max_momentum, config_.base_momentum, config_.max_momentum});
  }
  bool schedules_momentum() const override { return config_.cycle_momentum; }

 private:
  struct Values {
    double first, peak, last;
  };

  double along(std::int64_t step, const Values& values) const {
    const auto total = static_cast<double>(config_.total_steps);
    const double peak = config_.pct_start * total - 1.0;
    // torch refuses steps past the end, but for one, which goes along the same curve and may rise: here the last value
    // stays.
    const double now = std::min(static_cast<double>(step), total - 1.0);
    if (now <= peak) return between(values.first, values.peak, now, 0.0, peak);
    if (!config_.three_phase) return between(values.peak, values.last, now, peak, total - 1.0);
    const double back = 2.0 * config_.pct_start * total - 2.0;
    if (now <= back) return between(values.peak, values.first, now, peak, back);
    return between(values.first, values.last, now, back, total - 1.0);
  }

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
