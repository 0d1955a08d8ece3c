#include <cmath>
#include <memory>

#include "components/lr_scheduler/lr_scheduler.h"
#include "components/lr_scheduler/warmup.h"
#include "generated/lr_scheduler/inverse_sqrt.h"  // Config; declares make()

namespace components::lr_scheduler::inverse_sqrt {
namespace {

class InverseSqrt final : public Scheduler {
 public:
  explicit InverseSqrt(const Config& config) : config_(config) {}

  double factor(std::int64_t step) const override {
    const Warmup warmup{config_.warmup_steps};
    if (warmup.covers(step)) return warmup.factor(step);
    const auto timescale =
        static_cast<double>(config_.timescale.value_or(config_.warmup_steps > 0 ? config_.warmup_steps : 10'000));
    return 1.0 / std::sqrt((static_cast<double>(step - config_.warmup_steps) + timescale) / timescale);
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<InverseSqrt>(config); }

}  // namespace components::lr_scheduler::inverse_sqrt
