#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "runner/train/strategy/row_gradients.h"
#include "runner/train/strategy/sharded_optimizer.h"

namespace runner::train {

/// A sharded optimizer whose processes also keep the gradients of their rows alone: each is sent in the backward pass
/// that made it, to each process its rows, which are added to those of earlier passes, and is freed. Some gradients
/// are on their way while the pass makes the next ones. Every process makes the same exchanges, also without samples.
///
/// Without `accumulation.sync_each_batch` whole gradients are added up until the last pass of a step, which sends them.
/// Those of one pass travel in the type that it multiplied the weights in (autocast); sums of passes are float32.
///
/// Source  ZeRO stage 2, arXiv:1910.02054, section 5.2
class ShardedGradients : public ShardedOptimizer {
 public:
  explicit ShardedGradients(const Experiment& experiment);
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
  std::optional<HeldBytes> held_bytes() const override;

 protected:
  /// Adds this process's rows of a gradient to those of earlier passes.
  RowGradients::Receive receive();
  void open_exchange();
  void close_exchange();
  bool syncs_each_pass() const { return syncs_each_pass_; }
  /// Whether no other exchange of this step follows the one that is open.
  bool is_last_exchange() const { return exchanges_ + 1 >= most_; }
  /// Whether whole gradients are kept between the passes of a step.
  bool keeps_gradients() const { return !syncs_each_pass_ && accumulates_; }
  /// Whether every process of the copy multiplies bfloat16 on its device. Machines may differ, and what travels must
  /// not. A collective.
  bool all_multiply_bf16(c10::Device device) const;
  /// Of this process's rows of all gradients, in float32.
  std::int64_t row_bytes() const;

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
  /// How many a step has where the busiest process makes that many passes.
  virtual std::int64_t exchanges_of(std::int64_t passes) const;
  void unhook();
  void note_gradient(std::size_t parameter);
  void launch_next();
  void land();
  /// This process's part of all gradients, in which each counts once.
  components::NamedTensors counted() const;
  double total_norm() const;

  bool syncs_each_pass_ = true, accumulates_ = false;
  std::int64_t bucket_bytes_ = 0, weight_bytes_ = 0;  // of a bucket; of the model
  std::vector<at::Tensor> sums_;                      // by parameter: its rows of this step's gradient, float32
  std::vector<bool> used_;                            // by parameter, whether any process had a gradient in this step
  std::vector<Bucket> buckets_;                       // in the order of a backward pass; empty where others exchange
  std::vector<std::size_t> bucket_of_;                // by parameter
  std::size_t next_ = 0;                              // the next bucket to send; the one before it is on its way
  bool in_flight_ = false;
  std::int64_t exchanges_ = 0;  // of this step
  std::int64_t most_ = 0;       // of them
  bool is_open_ = false;        // a pass is in progress
  double norm_ = 0.0;
};

}  // namespace runner::train
