#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "components/weight_averaging/weight_averaging.h"
#include "generated/weight_averaging/swa.h"  // Config; declares make()

namespace components::weight_averaging::swa {
namespace {

class Swa final : public Averaging {
 public:
  Swa(const Config& config, double base_lr)
      : Averaging(config.start_step, config.update_every), config_(config), base_lr_(base_lr) {}

  double weight_of_new(std::int64_t averaged) const override { return 1.0 / static_cast<double>(averaged + 1); }

  bool updates_bn_stats() const override { return config_.update_bn; }

  // The schedule is followed until the SWA rate takes over.
  double lr_factor(std::int64_t steps_done, double scheduled) const override {
    if (!config_.lr || base_lr_ == 0.0 || steps_done < start_step()) return scheduled;
    const double way = annealed(steps_done - start_step());
    return scheduled * (1.0 - way) + *config_.lr / base_lr_ * way;
  }

 private:
  double annealed(std::int64_t steps) const {
    if (!config_.anneal_steps) return 1.0;
    const double progress = std::min(1.0, static_cast<double>(steps) / static_cast<double>(*config_.anneal_steps));
    if (config_.anneal_strategy == AnnealStrategy::kLinear) return progress;
    return 0.5 * (1.0 - std::cos(std::numbers::pi * progress));
  }

  Config config_;
  double base_lr_;
};

}  // namespace

std::shared_ptr<Averaging> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Swa>(config, inputs.base_lr);
}

}  // namespace components::weight_averaging::swa
