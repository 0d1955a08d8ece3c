#include "runner/train/step/unread_steps.h"

#include <ATen/ops/cat.h>

#include <utility>

namespace runner::train {

std::vector<EnqueuedStep> UnreadSteps::read() {
  std::vector<EnqueuedStep> steps;
  if (steps_.empty()) return steps;
  std::vector<at::Tensor> values;
  for (const Unread& one : steps_) values.push_back(one.figures.values());
  const at::Tensor all = at::cat(values).cpu();
  const double* next = all.const_data_ptr<double>();
  for (Unread& one : steps_) {
    one.figures.complete(one.step.result, next);
    steps.push_back(std::move(one.step));
  }
  steps_.clear();
  return steps;
}

}  // namespace runner::train
