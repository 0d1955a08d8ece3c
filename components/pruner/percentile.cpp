#include "generated/pruner/percentile.h"  // Config; declares make()
#include "components/pruner/pruner.h"
#include "components/pruner/rank_among.h"

namespace components::pruner::percentile {

std::shared_ptr<Pruner> make(const Config& config, const Inputs&) {
  return std::make_shared<RankAmong>(
      RankLimits{config.percentile, config.n_startup_trials, config.n_warmup_steps, config.n_min_trials});
}

}  // namespace components::pruner::percentile
