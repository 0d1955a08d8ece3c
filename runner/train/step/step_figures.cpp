#include "runner/train/step/step_figures.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "runner/core/error.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/step/step_result.h"

namespace runner::train {

void add_pass(const PassWeight& pass, double sum, StepResult& result) {
  result.loss += sum * pass.weight;
  result.micro_losses.push_back(sum / static_cast<double>(pass.count));
}

StepFigures::StepFigures(const std::vector<at::Tensor>& sums, std::vector<PassWeight> passes, double factor,
                         const GradientFigures& gradients)
    : passes_(std::move(passes)),
      factor_(factor),
      has_norm_(gradients.norm.defined()),
      has_overflow_(gradients.overflow.defined()) {
  RUNNER_ASSERT(!sums.empty() && sums.size() == passes_.size(), "each pass has a sum");
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> all;
  const auto options = at::TensorOptions(at::kDouble).device(sums.front().device());
  const auto add = [&](const at::Tensor& scalar) { all.push_back(scalar.to(options)); };
  for (const at::Tensor& sum : sums) add(sum);
  if (has_norm_) add(gradients.norm);
  if (has_overflow_) add(gradients.overflow);
  values_ = at::stack(all);
}

StepFigures StepFigures::of_replay(std::vector<PassWeight> passes, double factor) const {
  RUNNER_ASSERT(passes.size() == passes_.size(), "the same kernels have as many passes");
  StepFigures figures = *this;
  figures.values_ = values_.clone();
  figures.passes_ = std::move(passes);
  figures.factor_ = factor;
  return figures;
}

// The weights of the passes are finite, so the loss is, too, if all sums are.
at::Tensor StepFigures::not_finite() const {
  const at::NoGradGuard no_grad;
  return at::isfinite(values_).all().logical_not().to(at::kFloat);
}

bool StepFigures::complete(StepResult& result, const double*& values) const {
  for (const PassWeight& pass : passes_) add_pass(pass, *values++, result);
  result.loss *= factor_;
  if (has_norm_) result.grad_norm = *values++;
  result.is_read = true;
  return !has_overflow_ || *values++ == 0.0;
}

}  // namespace runner::train
