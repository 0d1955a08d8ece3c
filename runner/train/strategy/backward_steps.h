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

/// Uses each gradient in the backward pass as soon as it is complete, and frees it: for an optimizer that
/// steps_in_backward(). There are never more gradients than the pass itself needs at one time.
///
/// Source  Lv et al., arXiv:2306.09782, algorithm 1; two passes where the norm has to be known before: its section 3.3;
///         lomo-optim 0.1.1, Lomo.grad_norm() and fused_backward()
class BackwardSteps {
 public:
  /// Looks at the parameters for as long as it lives. `clip.norm` is the caller's: see `move`.
  BackwardSteps(components::optimizer::Optimizer& optimizer, const components::NamedTensors& parameters,
                const ClipOptions& clip);
  ~BackwardSteps();
  BackwardSteps(const BackwardSteps&) = delete;
  BackwardSteps& operator=(const BackwardSteps&) = delete;

  /// Where several processes train: gradients are those of all of them before they are used. Null: they are this
  /// process's own. Lives longer, or until the next call.
  void put_together_by(distributed::StreamingReducer* relay) { relay_ = relay; }

  /// The next backward pass only measures: each gradient is multiplied by `scale`, and dropped.
  void measure(double scale);
  /// The next backward pass moves the parameters: by the same gradients, clipped by value, times `coefficient`.
  void move(double scale, double coefficient, bool with_norm);
  /// After it, or instead of it where this process has no samples. By parameter, whether any process had a gradient;
  /// empty where it trains alone.
  std::vector<bool> end_pass();
  /// Total norm of the gradients of the last pass that was measured, as they came. Unlike clip_gradients(), clipping by
  /// value follows only then: the published optimizer does it in this order.
  double norm() const;

 private:
  class Hook;

  void arrived(std::size_t position);
  void use(std::size_t position);

  components::optimizer::Optimizer& optimizer_;
  const components::NamedTensors& parameters_;
  const ClipOptions clip_;
  distributed::StreamingReducer* relay_ = nullptr;
  bool moves_ = false, measures_ = false;
  double scale_ = 1.0, coefficient_ = 1.0;
  std::vector<double> norms_;  // by position of the parameter, as of gradients that are held; 0 without a gradient
};

}  // namespace runner::train
