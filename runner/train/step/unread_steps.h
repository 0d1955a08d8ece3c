#pragma once

#include <cstddef>
#include <vector>

#include "runner/train/step/step_figures.h"
#include "runner/train/step/step_result.h"

namespace runner::train {

/// Enqueued steps and what the device knows of them, oldest first.
class UnreadSteps {
 public:
  void add(EnqueuedStep step, StepFigures figures) { steps_.push_back({std::move(step), std::move(figures)}); }
  void clear() { steps_.clear(); }
  std::size_t size() const { return steps_.size(); }
  /// Waits for the device once and completes the steps.
  std::vector<EnqueuedStep> read();

 private:
  struct Unread {
    EnqueuedStep step;
    StepFigures figures;
  };
  std::vector<Unread> steps_;
};

}  // namespace runner::train
