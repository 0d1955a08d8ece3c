#include <cmath>
#include <memory>
#include <numbers>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/warm_restarts.h"  // Config; declares make()

namespace components::lr_scheduler::warm_restarts {
namespace {

class WarmRestarts final : public Scheduler {
 public:
  explicit WarmRestarts(const Config& config) : config_(config) {}

  double factor(std::int64_t step) const override {
    std::int64_t length = config_.cycle_steps, begin = 0;
    if (config_.cycle_mult == 1) {
      begin = step / length * length;
    } else {
      while (step - begin >= length) {
        begin += length;
        length *= config_.cycle_mult;
      }
    }
    const double progress = static_cast<double>(step - begin) / static_cast<double>(length);
    const double wave = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    return config_.min_lr_ratio + (1.0 - config_.min_lr_ratio) * wave;
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<WarmRestarts>(config); }

}  // namespace components::lr_scheduler::warm_restarts
