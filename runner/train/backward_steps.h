#pragma once

#include <optional>
#include <string>
#include <vector>

#include "components/optimizer/optimizer.h"
#include "components/tensors.h"
#include "runner/core/diagnostics.h"
#include "runner/train/gradients.h"

namespace runner::train {

struct Experiment;

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

  /// The next backward pass only measures: each gradient is multiplied by `scale`, and dropped.
  void measure(double scale);
  /// The next backward pass moves the parameters: by the same gradients, clipped by value, times `coefficient`.
  void move(double scale, double coefficient, bool with_norm);
  /// Total norm of the gradients of the last pass that was measured, as they came. Unlike clip_gradients(), clipping by
  /// value follows only then: the published optimizer does it in this order.
  double norm() const;

 private:
  class Hook;

  void arrived(const at::Tensor& parameter, std::size_t position);

  components::optimizer::Optimizer& optimizer_;
  const components::NamedTensors& parameters_;
  const ClipOptions clip_;
  bool moves_ = false, measures_ = false;
  double scale_ = 1.0, coefficient_ = 1.0;
  std::vector<double> norms_;  // by position of the parameter, as of gradients that are held; 0 without a gradient
};

/// What a recipe asks for that needs all gradients at once, or weights that have not moved, with such an optimizer.
void refuse_what_needs_gradients(const Experiment& experiment, core::Diagnostics& diagnostics);

}  // namespace runner::train
