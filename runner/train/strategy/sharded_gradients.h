#pragma once

#include <cstdint>
#include <vector>

#include "runner/train/strategy/sharded_optimizer.h"

namespace runner::train {

/// A sharded optimizer whose processes also keep the gradients of their rows alone: each is exchanged in the backward
/// pass that made it, its rows are added to those of earlier passes, and the rest is freed.
///
/// Source  ZeRO stage 2, arXiv:1910.02054, section 5.2
class ShardedGradients : public ShardedOptimizer {
 public:
  explicit ShardedGradients(const Experiment& experiment) : ShardedOptimizer(experiment) {}
  ~ShardedGradients() override;

  void begin(const StrategyInputs& inputs) override;
  void end() override;
  void begin_step(const StepPlan& plan) override;
  void before_backward(const Pass& pass) override;
  void after_backward(const Pass& pass) override;
  RankNotes finish(const PassesEnd& end) override;
  bool unscale(const GradScaler& scaler) override;
  std::optional<double> clip(bool wants_norm) override;
  double norm() const override { return norm_; }
  std::int64_t held_gradient_bytes(const at::Tensor& parameter) const override;

 protected:
  /// Adds a process's rows of a gradient to those of earlier passes.
  void add_rows(std::size_t parameter, const at::Tensor& rows);
  void note_used(std::size_t parameter) { used_[parameter] = true; }
  void open_exchange();
  void close_exchange();

 private:
  class Hook;

  RankGradients::Use use() const override { return RankGradients::Use::kInPass; }
  void hand_over_gradients() override;
  virtual void watch_gradients(const StrategyInputs& inputs);
  /// Around the exchanges of a pass, which this process may have no samples for.
  virtual void begin_exchange();
  virtual void end_exchange();
  void unhook();
  double total_norm() const;

  std::vector<at::Tensor> sums_;  // by parameter: its rows of this step's gradient, float32
  std::vector<bool> used_;        // by parameter, whether any process had a gradient in this step
  std::int64_t exchanges_ = 0;    // of this step
  bool is_open_ = false;          // a pass is in progress
  double norm_ = 0.0;
};

}  // namespace runner::train
