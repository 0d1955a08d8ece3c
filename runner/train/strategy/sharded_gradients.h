#pragma once

#include <cstdint>
#include <vector>

#include "runner/train/strategy/row_gradients.h"
#include "runner/train/strategy/sharded_optimizer.h"

namespace runner::train {

/// A sharded optimizer whose processes also keep the gradients of their rows alone: each is sent in the backward pass
/// that made it, to each process its rows, which are added to those of earlier passes, and is freed. Some gradients
/// are on their way while the pass makes the next ones. Every process makes the same exchanges, also without samples.
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
  /// Adds this process's rows of a gradient to those of earlier passes.
  RowGradients::Receive receive();
  void open_exchange();
  void close_exchange();

 private:
  class Hook;
  /// Consecutive parameters, from the last one to the first.
  struct Bucket {
    RowGradients gradients;
    std::size_t parameters = 0, missing = 0;  // gradients of a pass, and of this one still missing
  };

  RankGradients::Use use() const override { return RankGradients::Use::kApart; }
  void hand_over_gradients() override;
  virtual void watch_gradients(const StrategyInputs& inputs);
  /// Around the exchanges of a pass, which this process may have no samples for.
  virtual void begin_exchange();
  virtual void end_exchange();
  void unhook();
  void note_gradient(std::size_t parameter);
  void launch_next();
  void land();
  double total_norm() const;

  std::vector<at::Tensor> sums_;        // by parameter: its rows of this step's gradient, float32
  std::vector<bool> used_;              // by parameter, whether any process had a gradient in this step
  std::vector<Bucket> buckets_;         // in the order of a backward pass; empty where others exchange
  std::vector<std::size_t> bucket_of_;  // by parameter
  std::size_t next_ = 0;                // the next bucket to send; the one before it is on its way
  bool in_flight_ = false;
  std::int64_t exchanges_ = 0;  // of this step
  bool is_open_ = false;        // a pass is in progress
  double norm_ = 0.0;
};

}  // namespace runner::train
