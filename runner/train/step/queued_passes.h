#pragma once

#include "runner/train/step/plain_passes.h"

namespace runner::train {

/// For a device that need not wait for the CPU between the first pass and the update: losses, norm and overflow are
/// read together, before the update or, of an enqueued step, at any time after it.
class QueuedPasses : public PlainPasses {
 public:
  QueuedPasses(const Parts& parts, bool can_enqueue);

  bool clip(bool wants_norm, StepResult& result) override;
  bool can_enqueue() const override { return can_enqueue_; }
  StepFigures enqueue(bool wants_norm, StepResult& result, bool& began) override;
  void forget_bad_steps() override;

 protected:
  StepFigures clip_on_device(bool wants_norm);
  /// What `bad`, if defined, is after a step with these figures; undefined: nothing looks for values that are not
  /// finite.
  at::Tensor bad_with(const StepFigures& figures, const at::Tensor& bad) const;

  const bool can_enqueue_, stops_on_nan_;
  at::Tensor bad_;  // on the device, 1 once an enqueued step was not finite; undefined: none was looked at

 private:
  void read_losses(StepResult&) override {}
};

}  // namespace runner::train
