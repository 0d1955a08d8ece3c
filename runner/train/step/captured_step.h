#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/platform/device_graph.h"
#include "runner/train/step/accumulation_window.h"
#include "runner/train/step/step_figures.h"

namespace runner::train {

/// An optimizer step that the device repeats as a whole: the forward and backward passes of a window, clipping, the
/// check for values that are not finite, and the optimizer. What changes from step to step is in fixed tensors: the
/// micro-batches, the weights of the passes, and the rates and counts of the optimizer. A window of another shape is
/// made without it.
class CapturedStep {
 public:
  /// The fixed tensors, on the device.
  struct Inputs {
    std::vector<components::TensorMap> batches;  ///< of each pass
    std::vector<at::Tensor> weights;             ///< of each pass: a float32 scalar, the gradient of its sum of losses
    at::Tensor bad;                              ///< a float32 scalar: 1 once a step was not finite
  };
  /// Starts everything up to the optimizer's kernels. The gradients of the parameters are none before.
  using Work = std::function<StepFigures(const Inputs&)>;

  /// All of them outlive this.
  CapturedStep(const core::NewDeviceGraph& new_graph, const Experiment& experiment,
               const std::vector<components::NamedTensor>& parameters);
  ~CapturedStep();

  /// True if the step of a full window is to be replayed, after capture() where `is_captured()` is false: the first
  /// full window fixes the shape, and some steps of that shape are made without the graph, for what LibTorch prepares
  /// in the first ones.
  bool takes(const std::vector<MicroBatch>& window);
  bool is_captured() const { return graph_ != nullptr; }
  /// Records `work` for windows like this one. False if the memory does not suffice: no window is taken any more.
  /// RunError for what a graph cannot hold.
  bool capture(const std::vector<MicroBatch>& window, const Work& work);
  /// Sets the inputs of the next replay: a window and the weights of its passes; `bad` as in Inputs, undefined: none
  /// was not finite. Nothing has moved if memory runs out.
  void load(const std::vector<MicroBatch>& window, const std::vector<double>& weights, const at::Tensor& bad);
  /// Makes the step that was loaded and that the optimizer's count_step() counted. `passes`, `factor`: as for
  /// StepFigures.
  StepFigures replay(std::vector<PassWeight> passes, double factor);
  /// Inputs::bad after the last replay.
  const at::Tensor& bad() const { return inputs_.bad; }
  /// Forgets the graph and the shape: the state of the training was replaced, or its windows get another shape.
  void reset();

 private:
  struct Shape;

  std::vector<Shape> shape_of(const std::vector<MicroBatch>& window) const;
  void copy_in(const std::vector<MicroBatch>& window);

  const core::NewDeviceGraph& new_graph_;
  const Experiment& experiment_;
  const std::vector<components::NamedTensor>& parameters_;
  std::vector<Shape> shape_;
  std::int64_t steps_ = 0;  // of this shape, without the graph
  bool gave_up_ = false;
  Inputs inputs_;
  std::vector<double> weights_;        // those that inputs_.weights hold
  std::vector<at::Tensor> gradients_;  // by parameter, in the graph's memory
  std::optional<StepFigures> figures_;
  std::unique_ptr<core::DeviceGraph> graph_;
};

}  // namespace runner::train
