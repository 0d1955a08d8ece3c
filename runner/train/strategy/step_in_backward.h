#pragma once

#include <memory>
#include <optional>

#include "components/tensor/buffer_snapshot.h"
#include "components/tensor/random_state.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/strategy/backward_steps.h"
#include "runner/train/strategy/rank_exchange.h"

namespace runner::train {

/// Each gradient is used and freed as it arrives, in one process or several. Anything needed from all gradients before
/// the first update costs another forward and backward pass: the graph of the first one is gone, with its activations.
class StepInBackward : public GradientStrategy {
 public:
  void begin(const StrategyInputs& inputs) override;
  void end() override;
  void sync_rng_states() override;
  void begin_step(const StepPlan& plan) override;
  double weight() const override { return ranks_ != nullptr ? ranks_->gradients().weight() : 1.0; }
  void before_forward(const Pass& pass) override;
  bool defers_backward() const override { return !norm_first_; }
  RankNotes finish(const PassesEnd& end) override;
  bool unscale(const GradScaler&) override;
  std::optional<double> clip(bool wants_norm) override;
  double norm() const override { return steps_->norm(); }
  bool needs_second_pass() const override { return true; }
  void update(const SecondPass& again, bool& began) override;

 private:
  void sync_buffers();

  const Experiment* experiment_ = nullptr;
  const StepperOptions* options_ = nullptr;
  std::unique_ptr<RankExchange> ranks_;  // null with one process; outlives what relays through it
  std::optional<BackwardSteps> steps_;
  bool norm_first_ = false, measures_ = false;
  double unscale_ = 1.0, coefficient_ = 1.0;
  std::int64_t others_after_ = 0;
  components::RandomState random_;
  std::optional<components::BufferSnapshot> buffers_;
};

}  // namespace runner::train
