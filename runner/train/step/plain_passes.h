#pragma once

#include <vector>

#include "runner/train/step/pass_runner.h"

namespace runner::train {

/// One micro-batch after the other, each forward and backward. The CPU reads their losses before the processes exchange
/// gradients.
class PlainPasses : public PassRunner {
 public:
  explicit PlainPasses(const Parts& parts) : PassRunner(parts) {}

  void run(StepResult& result) override;
  bool clip(bool wants_norm, StepResult& result) override;
  void update(bool& began) override;

 protected:
  /// The backward pass of `sum`, which the forward pass of `micro` returned.
  virtual void go_back(const MicroBatch& micro, at::Tensor sum);
  /// Adds the losses of the passes to the result.
  virtual void read_losses(StepResult& result);

  std::vector<at::Tensor> sums_;  // of the losses of this window's passes, on their device
};

}  // namespace runner::train
