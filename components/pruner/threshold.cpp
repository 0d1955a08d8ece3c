#include <cmath>

#include "components/pruner/pruner.h"
#include "generated/pruner/threshold.h"  // Config; declares make()

namespace components::pruner::threshold {
namespace {

class Threshold final : public Pruner {
 public:
  Threshold(const Config& config, const Inputs& inputs) : config_(config), maximize_(inputs.maximize) {}

  bool should_prune(const Curve& mine) const override {
    const Report& last = mine.reports.back();
    if (last.step <= config_.n_warmup_steps) return false;
    const double value = maximize_ ? -last.value : last.value;
    return std::isnan(value) || (config_.lower && value < *config_.lower) || (config_.upper && value > *config_.upper);
  }

 private:
  Config config_;
  bool maximize_;
};

}  // namespace

std::shared_ptr<Pruner> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Threshold>(config, inputs);
}

}  // namespace components::pruner::threshold
