#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "components/tensor/tensors.h"

namespace runner::train {

struct GradientFigures;
struct StepResult;

/// The part of one forward pass in the loss of its step.
struct PassWeight {
  double weight = 0;       ///< of its sum of losses
  std::int64_t count = 1;  ///< elements in its own mean
};

/// Adds a forward pass with this sum of losses to the step's loss.
void add_pass(const PassWeight& pass, double sum, StepResult& result);

/// What a device knows of a step, until the CPU reads it: the loss of each pass and what the gradients showed.
class StepFigures {
 public:
  /// `sums`: of the losses, one scalar for each pass. `factor`: of the step's whole loss.
  StepFigures(const std::vector<at::Tensor>& sums, std::vector<PassWeight> passes, double factor,
              const GradientFigures& gradients);

  /// Those of the step that a graph has just made with the kernels of this one: its values are copied, for the next
  /// replay to overwrite.
  StepFigures of_replay(std::vector<PassWeight> passes, double factor) const;

  /// What the CPU is to read, [F] in float64.
  const at::Tensor& values() const { return values_; }
  /// A float32 scalar on the device: 1 if the loss or the norm is not finite, else 0.
  at::Tensor not_finite() const;
  /// Completes the result of the step by the values, now on the CPU, and moves behind them. False when the gradients
  /// overflowed.
  bool complete(StepResult& result, const double*& values) const;

 private:
  at::Tensor values_;  // F: the sum of each pass, then the norm and the overflow, if there are any
  std::vector<PassWeight> passes_;
  double factor_;
  bool has_norm_, has_overflow_;
};

}  // namespace runner::train
