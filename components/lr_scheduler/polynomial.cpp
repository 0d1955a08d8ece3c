#include <cmath>
#include <memory>

#include "components/lr_scheduler/lr_scheduler.h"
#include "components/lr_scheduler/warmup.h"
#include "generated/lr_scheduler/polynomial.h"  // Config; declares make()

namespace components::lr_scheduler::polynomial {
namespace {

class Polynomial final : public Scheduler {
 public:
  explicit Polynomial(const Config& config)
      : config_(config), warmup_(Warmup::of(config.warmup_steps, config.warmup_ratio, config.total_steps)) {}

  double factor(std::int64_t step) const override {
    if (warmup_.covers(step)) return warmup_.factor(step);
    if (step >= config_.total_steps) return config_.min_lr_ratio;  // a warm-up may last to the end
    const double left = 1.0 - warmup_.progress(step, config_.total_steps);
    return config_.min_lr_ratio + (1.0 - config_.min_lr_ratio) * std::pow(left, config_.power);
  }

 private:
  Config config_;
  Warmup warmup_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<Polynomial>(config); }

}  // namespace components::lr_scheduler::polynomial
