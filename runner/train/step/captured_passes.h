#pragma once

#include "runner/train/step/captured_step.h"
#include "runner/train/step/queued_passes.h"

namespace runner::train {

/// `compile.cuda_graphs`: an enqueued step whose window has the shape of the first full one is replayed; others are
/// made pass by pass.
class CapturedPasses final : public QueuedPasses {
 public:
  explicit CapturedPasses(const Parts& parts);

  bool needs_norm() const override { return true; }  // a graph measures it in every step
  StepFigures enqueue(bool wants_norm, StepResult& result, bool& began) override;
  void reset() override { captured_.reset(); }

 private:
  /// Whether the graph makes the step of this window, which it may have to be captured for.
  bool is_captured();
  /// The kernels of a step, up to the optimizer's.
  StepFigures work(const CapturedStep::Inputs& inputs);
  StepFigures replay(bool& began);

  CapturedStep captured_;
};

}  // namespace runner::train
