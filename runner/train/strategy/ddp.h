#pragma once

#include <optional>
#include <vector>

#include "runner/train/strategy/rank_exchange.h"
#include "runner/train/strategy/single.h"

namespace runner::train {

/// Several processes, each with the whole model: gradients are exchanged while the backward pass runs.
class Ddp : public Single {
 public:
  void begin(const StrategyInputs& inputs) override {
    Single::begin(inputs);
    exchange_.emplace(inputs, use());
  }
  void end() override {
    exchange_.reset();
    Single::end();
  }
  void sync_rng_states() override { exchange_->sync_rng_states(); }
  void begin_step(const StepPlan&) override { exchange_->begin_step(); }
  double weight() const override { return exchange_->gradients().weight(); }
  void before_forward(const Pass& pass) override { exchange_->before_forward(pass); }
  void before_backward(const Pass& pass) override { exchange_->gradients().begin_pass(pass.last); }
  void after_backward(const Pass& pass) override { exchange_->gradients().end_pass(pass.last); }
  RankNotes finish(const PassesEnd& end) override {
    RankNotes notes = exchange_->finish(end);
    exchange_->sync_buffers(end.others_after);
    exchange_->gradients().check();
    return notes;
  }
  bool keeps_buckets() const override { return use() == RankGradients::Use::kAfterPasses; }
  std::vector<RankState> rank_states() override {
    core::Stateful* state = exchange_->gradients().state();
    return state != nullptr ? std::vector<RankState>{{"ddp", state}} : std::vector<RankState>();
  }

 protected:
  /// From begin() to end().
  RankExchange& exchange() { return *exchange_; }

 private:
  virtual RankGradients::Use use() const { return RankGradients::Use::kAfterPasses; }

  std::optional<RankExchange> exchange_;
};

}  // namespace runner::train
