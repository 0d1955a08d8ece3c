#include "generated/pruner/median.h"  // Config; declares make()
#include "components/pruner/pruner.h"
#include "components/pruner/rank_among.h"

namespace components::pruner::median {
namespace {

class Median final : public Pruner {
 public:
  explicit Median(const RankAmong& rank) : rank_(rank) {}

  bool gives_up(const Curve& mine, const std::vector<Curve>& others) const override {
    return rank_.falls_behind(mine, others);
  }

 private:
  RankAmong rank_;
};

}  // namespace

std::shared_ptr<Pruner> make(const Config& config, const Inputs&) {
  return std::make_shared<Median>(RankAmong{50, config.n_startup_trials, config.n_warmup_steps, config.n_min_trials});
}

}  // namespace components::pruner::median
