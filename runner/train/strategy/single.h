#pragma once

#include <optional>

#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/stepper_options.h"

namespace runner::train {

/// One process: gradients are held until the optimizer steps.
class Single : public GradientStrategy {
 public:
  void begin(const StrategyInputs& inputs) override;
  void end() override;
  RankNotes finish(const PassesEnd& end) override;
  bool unscale(const GradScaler& scaler) override;
  std::optional<double> clip(bool wants_norm) override;
  /// Not among several processes, which tell each other the losses.
  bool stays_on_device() const override { return !experiment_->device.is_cpu() && experiment_->ranks == nullptr; }
  GradientFigures unscale_and_clip(const GradScaler& scaler, bool wants_norm) override;
  double norm() const override;
  void update(const SecondPass& again, bool& began) override;

 protected:
  // Null before begin() and after end().
  Experiment* experiment_ = nullptr;
  const components::NamedTensors* parameters_ = nullptr;
  const StepperOptions* options_ = nullptr;
};

}  // namespace runner::train
