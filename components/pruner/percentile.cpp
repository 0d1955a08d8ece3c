#include "generated/pruner/percentile.h"  // Config; declares make()
#include "components/pruner/percentile_pruner.h"
#include "components/pruner/pruner.h"

namespace components::pruner::percentile {

std::shared_ptr<Pruner> make(const Config& config, const Inputs&) {
  return std::make_shared<PercentilePruner>(
      PercentileOptions{config.percentile, config.n_startup_trials, config.n_warmup_steps, config.n_min_trials});
}

}  // namespace components::pruner::percentile
