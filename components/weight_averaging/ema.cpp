#include <algorithm>
#include <cmath>
#include <memory>

#include "components/weight_averaging/weight_averaging.h"
#include "generated/weight_averaging/ema.h"  // Config; declares make()

namespace components::weight_averaging::ema {
namespace {

class Ema final : public Averaging {
 public:
  explicit Ema(const Config& config) : Averaging(config.start_step, config.update_every), config_(config) {}

  double weight_of_new(std::int64_t averaged) const override { return 1.0 - decay(static_cast<double>(averaged)); }

 private:
  double decay(double updates) const {
    if (!config_.warmup_power) return config_.decay;
    const double climb = 1.0 - std::pow(1.0 + updates / config_.warmup_gamma.value_or(1.0), -*config_.warmup_power);
    return std::min(config_.decay, climb);
  }

  Config config_;
};

}  // namespace

std::shared_ptr<Averaging> make(const Config& config, const Inputs&) { return std::make_shared<Ema>(config); }

}  // namespace components::weight_averaging::ema
