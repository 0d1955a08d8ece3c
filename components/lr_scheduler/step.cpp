#include <cmath>
#include <memory>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/step.h"  // Config; declares make()

namespace components::lr_scheduler::step {
namespace {

class Step final : public Scheduler {
 public:
  explicit Step(const Config& config) : config_(config) {}

  double factor(std::int64_t step) const override {
    return std::pow(config_.gamma, static_cast<double>(step / config_.step_size));
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<Step>(config); }

}  // namespace components::lr_scheduler::step
