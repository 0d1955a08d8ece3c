#pragma once

#include <optional>
#include <string>
#include <vector>

#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "runner/train/experiment/gradients.h"

namespace runner::distributed {
class StreamingReducer;
}

namespace runner::train {

/// Uses each gradient in the backward pass as soon as it is complete, and frees it: for an optimizer with
/// steps_in_backward(). Only the gradients that the pass itself needs are in memory.
///
/// Source  Lv et al., arXiv:2306.09782, algorithm 1; two passes if the norm must be known before: its section 3.3;
///         lomo-optim 0.1.1, Lomo.grad_norm() and fused_backward()
class BackwardSteps {
 public:
  /// Hooks the parameters for as long as it lives. `clip.norm` is up to the caller: see `move`.
  BackwardSteps(components::optimizer::Optimizer& optimizer, const components::NamedTensors& parameters,
                const ClipOptions& clip);
  ~BackwardSteps();
  BackwardSteps(const BackwardSteps&) = delete;
  BackwardSteps& operator=(const BackwardSteps&) = delete;

  /// With several processes: reduces gradients over the ranks before use. Null: uses this process's own. Must outlive
  /// this, or live until the next call.
  void reduce_with(distributed::StreamingReducer* reducer) { reducer_ = reducer; }

  /// The next backward pass only measures: multiplies each gradient by `scale`, then drops it.
  void measure(double scale);
  /// The next backward pass updates the parameters: by the same gradients, clipped by value, times `coefficient`.
  void move(double scale, double coefficient, bool with_norm);
  /// Call after it, or instead of it if this process has no samples. By parameter, whether any process had a gradient;
  /// empty with one process.
  std::vector<bool> end_pass();
  /// Total norm of the gradients of the last measured pass, before clipping. Unlike clip_gradients(), clipping by value
  /// comes later: the published optimizer uses this order.
  double norm() const;

 private:
  class Hook;

  void mark_ready(std::size_t position);
  void use(std::size_t position);

  components::optimizer::Optimizer& optimizer_;
  const components::NamedTensors& parameters_;
  const ClipOptions clip_;
  distributed::StreamingReducer* reducer_ = nullptr;
  bool moves_ = false, measures_ = false;
  double scale_ = 1.0, coefficient_ = 1.0;
  std::vector<double> norms_;  // by parameter, as for stored gradients; 0 without a gradient
};

}  // namespace runner::train
