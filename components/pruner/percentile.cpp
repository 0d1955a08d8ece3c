#include "generated/pruner/percentile.h"  // Config; declares make()
#include "components/pruner/pruner.h"
#include "components/pruner/rank_among.h"

namespace components::pruner::percentile {
namespace {

class Percentile final : public Pruner {
 public:
  explicit Percentile(const RankAmong& rank) : rank_(rank) {}

  bool gives_up(const Curve& mine, const std::vector<Curve>& others) const override {
    return rank_.falls_behind(mine, others);
  }

 private:
  RankAmong rank_;
};

}  // namespace

std::shared_ptr<Pruner> make(const Config& config, const Inputs&) {
  return std::make_shared<Percentile>(
      RankAmong{config.percentile, config.n_startup_trials, config.n_warmup_steps, config.n_min_trials});
}

}  // namespace components::pruner::percentile
