#include "generated/pruner/median.h"  // Config; declares make()
#include "components/pruner/pruner.h"
#include "components/pruner/rank_among.h"

namespace components::pruner::median {

std::shared_ptr<Pruner> make(const Config& config, const Inputs&) {
  return std::make_shared<RankAmong>(
      RankLimits{50, config.n_startup_trials, config.n_warmup_steps, config.n_min_trials});
}

}  // namespace components::pruner::median
