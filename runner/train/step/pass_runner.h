#pragma once

#include <memory>

#include "components/tensor/tensors.h"
#include "runner/train/step/accumulation_window.h"
#include "runner/train/step/step_figures.h"
#include "runner/train/step/step_result.h"

namespace runner::train {

class GradientStrategy;
class GradScaler;
class PassHooks;

/// Runs the passes of a window of micro-batches and what depends on their order: when losses and norm are read, and
/// which passes the update itself needs. One form a training; all of them give the same weights.
///
/// A step is run(), clip(), update(), or enqueue() alone.
class PassRunner {
 public:
  /// All of them outlive the runner.
  struct Parts {
    Experiment& experiment;
    const components::NamedTensors& parameters;
    AccumulationWindow& window;
    GradientStrategy& strategy;
    const GradScaler& scaler;
    const Progress& progress;
    PassHooks& hooks;
  };

  virtual ~PassRunner() = default;

  /// The passes of this process's part of the window, up to gradients that are reduced over all processes, and the loss
  /// in `result` unless clip() reads it. Where memory runs out in one process, all throw.
  virtual void run(StepResult& result) = 0;
  /// Unscales and clips the gradients; false when they overflowed. The loss is in `result` afterwards.
  virtual bool clip(bool wants_norm, StepResult& result) = 0;
  /// Updates the parameters, and frees what the window does not reuse; `began` is set once one of them may have
  /// changed.
  virtual void update(bool& began) = 0;

  /// Whether the device decides by itself that a step is made; see experiment/step_wait.h.
  virtual bool can_enqueue() const { return false; }
  /// Whether enqueue() measures the norm in every step.
  virtual bool needs_norm() const { return false; }
  /// A whole step without a wait for the device, which returns what to read later. Weights and optimizer state stay as
  /// they are from the first step on that was not finite, if that is to stop the training.
  virtual StepFigures enqueue(bool wants_norm, StepResult& result, bool& began);
  /// A step that was not finite will be repeated: the next one is enqueued as if there had been none.
  virtual void forget_bad_steps() {}

  /// Drops passes that no update follows.
  virtual void drop() {}
  /// The state of the training was replaced, or its windows get another shape.
  virtual void reset() {}

 protected:
  explicit PassRunner(const Parts& parts) : parts_(parts) {}

  const Parts parts_;
};

/// The form for the strategy and the recipe.
std::unique_ptr<PassRunner> make_pass_runner(const PassRunner::Parts& parts);

}  // namespace runner::train
