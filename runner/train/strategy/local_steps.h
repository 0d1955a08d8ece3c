#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "runner/train/strategy/local_sgd.h"
#include "runner/train/strategy/single.h"

namespace runner::train {

/// Several processes, each stepping independently as `Strategy` does; see local_sgd.h.
template <typename Strategy>
class LocalSteps final : public Strategy {
 public:
  void begin(const StrategyInputs& inputs) override {
    Strategy::begin(inputs);
    optimizer_ = inputs.experiment.optimizer.get();
    sgd_.emplace(*inputs.experiment.ranks, inputs.parameters, inputs.options.ddp.local_steps);
  }
  void end() override {
    sgd_.reset();
    optimizer_ = nullptr;
    Strategy::end();
  }

  void end_step(std::int64_t step) override { sgd_->after_step(step); }
  bool weights_in_sync() const override { return sgd_->in_sync(); }
  void sync_weights() override { sgd_->average(); }
  bool keeps_buckets() const override { return false; }  // weights are averaged where they are
  std::vector<RankState> rank_states() override {
    std::vector<RankState> states = Strategy::rank_states();
    states.push_back({"local_sgd", optimizer_});
    return states;
  }

 private:
  components::optimizer::Optimizer* optimizer_ = nullptr;
  std::optional<LocalSgd> sgd_;
};

}  // namespace runner::train
