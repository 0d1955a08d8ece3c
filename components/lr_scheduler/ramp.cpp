#include <algorithm>
#include <memory>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/ramp.h"  // Config; declares make()

namespace components::lr_scheduler::ramp {
namespace {

class Ramp final : public Scheduler {
 public:
  explicit Ramp(const Config& config) : config_(config) {}

  double factor(std::int64_t step) const override {
    const double progress = std::min(1.0, static_cast<double>(step) / static_cast<double>(config_.total_steps));
    return config_.start_factor + (config_.end_factor - config_.start_factor) * progress;
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<Ramp>(config); }

}  // namespace components::lr_scheduler::ramp
