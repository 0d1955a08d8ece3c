#include <algorithm>
#include <cmath>
#include <memory>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/multi_step.h"  // Config; declares make()

namespace components::lr_scheduler::multi_step {
namespace {

class MultiStep final : public Scheduler {
 public:
  explicit MultiStep(const Config& config) : config_(config) {}

  double factor(std::int64_t step) const override {
    const auto passed = std::count_if(config_.milestones.begin(), config_.milestones.end(),
                                      [step](std::int64_t milestone) { return milestone <= step; });
    return std::pow(config_.gamma, static_cast<double>(passed));
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<MultiStep>(config); }

}  // namespace components::lr_scheduler::multi_step
