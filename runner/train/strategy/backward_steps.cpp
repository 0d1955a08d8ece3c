#include "runner/train/strategy/backward_steps.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "components/tensor/norms.h"
#include "runner/distributed/streaming_reducer.h"

namespace runner::train {

class BackwardSteps::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(BackwardSteps& steps, std::size_t position) : steps_(steps), position_(position) {}
  void operator()(const at::Tensor&) override { steps_.mark_ready(position_); }

 private:
  BackwardSteps& steps_;
  std::size_t position_;
};

BackwardSteps::BackwardSteps(components::optimizer::Optimizer& optimizer, const components::NamedTensors& parameters,
                             const ClipOptions& clip)
    : optimizer_(optimizer), parameters_(parameters), clip_(clip) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].tensor, std::make_unique<Hook>(*this, i));
  }
}

BackwardSteps::~BackwardSteps() {
  for (const auto& parameter : parameters_) torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
}

void BackwardSteps::measure(double scale) {
  moves_ = false;
  measures_ = true;
  scale_ = scale;
  coefficient_ = 1.0;
  norms_.assign(parameters_.size(), 0.0);
  if (reducer_ == nullptr) return;
  reducer_->begin([this](std::size_t position, at::Tensor gradient) {
    parameters_[position].tensor.mutable_grad() = std::move(gradient);
    use(position);
  });
}

void BackwardSteps::move(double scale, double coefficient, bool with_norm) {
  measure(scale);
  moves_ = true;
  measures_ = with_norm;
  coefficient_ = coefficient;
}

double BackwardSteps::norm() const { return components::norm_of_parts(norms_, clip_.norm_type); }

std::vector<bool> BackwardSteps::end_pass() { return reducer_ != nullptr ? reducer_->finish() : std::vector<bool>(); }

void BackwardSteps::mark_ready(std::size_t position) {
  if (reducer_ != nullptr) return reducer_->mark_ready(position);
  use(position);
}

void BackwardSteps::use(std::size_t position) {
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = parameters_[position].tensor.mutable_grad();
  if (scale_ != 1.0) gradient.mul_(scale_);
  if (measures_) norms_[position] = components::vector_norm(gradient, clip_.norm_type);
  if (clip_.value) gradient.clamp_(-*clip_.value, *clip_.value);
  if (moves_) {
    if (coefficient_ != 1.0) gradient.mul_(coefficient_);
    optimizer_.step();
  }
  gradient.reset();
}

}  // namespace runner::train
