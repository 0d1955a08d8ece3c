#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/chained.h"  // Config; declares make()
#include "runner/core/error.h"

namespace components::lr_scheduler::chained {
namespace {

using runner::core::RunError;

class Chained final : public Scheduler {
 public:
  Chained(std::vector<std::int64_t> milestones, std::vector<std::shared_ptr<Scheduler>> schedulers)
      : milestones_(std::move(milestones)), schedulers_(std::move(schedulers)) {}

  double factor(std::int64_t step) const override {
    const std::size_t which = which_at(step);
    return schedulers_[which]->factor(step - start_of(which));
  }
  std::optional<double> momentum(std::int64_t step) const override {
    const std::size_t which = which_at(step);
    return schedulers_[which]->momentum(step - start_of(which));
  }
  bool schedules_momentum() const override {
    return std::any_of(schedulers_.begin(), schedulers_.end(),
                       [](const auto& one) { return one->schedules_momentum(); });
  }

 private:
  std::size_t which_at(std::int64_t step) const {
    return static_cast<std::size_t>(std::upper_bound(milestones_.begin(), milestones_.end(), step) -
                                    milestones_.begin());
  }
  std::int64_t start_of(std::size_t which) const { return which == 0 ? 0 : milestones_[which - 1]; }

  std::vector<std::int64_t> milestones_;
  std::vector<std::shared_ptr<Scheduler>> schedulers_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs& inputs) {
  const auto refuse = [&inputs](const runner::core::Node& at, const std::string& what, const std::string& hint) {
    if (inputs.diagnostics == nullptr) throw RunError(what, hint);
    inputs.diagnostics->error(at.location(), what, hint);
    return nullptr;
  };
  RUNNER_ASSERT(config.milestones.size() + 1 == config.schedulers.size(), "the schema's rules hold");
  std::vector<std::shared_ptr<Scheduler>> schedulers;
  for (const auto& block : config.schedulers) {
    const std::string type = block.find("type")->as_string();
    if (type == "plateau") {
      return refuse(block, "plateau depends on evaluations and cannot be part of a chain",
                    "use `type: plateau` by itself");
    }
    const auto* total = block.find("total_steps");
    // The training's length settles that of a single schedule. A constant one needs it only for a warmup_ratio.
    if (type != "constant" && total != nullptr && total->is_null()) {
      return refuse(block, "a chained " + type + " needs its own total_steps", "write `total_steps:` in this block");
    }
    for (const char* key : {"step_with_optimizer", "step_per_process"}) {
      const auto* own = block.find(key);
      if (own != nullptr && own->as_bool() != std::string_view(key).starts_with("step_with")) {
        return refuse(*own, std::string(key) + " belongs to the whole chain", "write it next to `type: chained`");
      }
    }
    schedulers.push_back(build(block, inputs));
    if (schedulers.back() == nullptr) return nullptr;
  }
  return std::make_shared<Chained>(config.milestones, std::move(schedulers));
}

}  // namespace components::lr_scheduler::chained
