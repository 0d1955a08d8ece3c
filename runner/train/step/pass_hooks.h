#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/step/accumulation_window.h"
#include "runner/train/step/step_figures.h"
#include "runner/train/step/step_result.h"

namespace runner::train {

class GradientStrategy;
class GradScaler;
struct Pass;
class UnitHooks;

/// What a PassRunner calls for the micro-batches of a window, whatever its order: each call tells the strategy where
/// the step is.
class PassHooks {
 public:
  /// All but `notes` outlive this.
  struct Parts {
    const Experiment& experiment;
    const StepperOptions& options;
    const AccumulationWindow& window;
    GradientStrategy& strategy;
    const GradScaler& scaler;
    const Progress& progress;
    StepNotes notes;
  };
  explicit PassHooks(Parts parts);
  ~PassHooks();

  /// How many numbers each rank sends with every step, as the strategy is to know before it is built.
  static std::size_t numbers(const Experiment& experiment, const StepNotes& notes) {
    return kOwnNotes + 2 * experiment.loss->figure_names().size() + notes.count;
  }

  /// The sum of the micro-batch's losses. `tensors`: those of the micro-batch on the training's device.
  at::Tensor forward(const MicroBatch& micro, components::TensorMap tensors);
  /// Adds the gradients of that sum, or lets the strategy use them.
  void backward(const MicroBatch& micro, const at::Tensor& sum);
  /// Ends the passes: reduces gradients and loss over the ranks. `out_of_memory`: what ended the passes of this rank;
  /// null: nothing.
  void finish(StepResult& result, const std::exception_ptr& out_of_memory);

  /// Factor for the gradient of a pass.
  double gradient_weight(const MicroBatch& micro) const;
  /// The part of a pass in the loss of the step, and of each one.
  PassWeight loss_weight(const MicroBatch& micro) const;
  std::vector<PassWeight> loss_weights() const;

 private:
  // The rank's part of the loss; sums and counts of its figures follow.
  static constexpr std::size_t kOwnNotes = 1;

  Pass pass_of(const MicroBatch& micro) const;
  at::Tensor sum_of_losses(components::TensorMap activations, double weight) const;
  void trace(const char* what) const;

  const Parts parts_;
  std::unique_ptr<UnitHooks> unit_hooks_;  // null unless the strategy watches units
  const bool traced_;
  at::Tensor weight_;  // the last pass's, on its device
  double weight_value_;
};

}  // namespace runner::train
