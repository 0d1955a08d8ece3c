#include "runner/train/backward_steps.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "components/norms.h"
#include "generated/section/launch.h"
#include "generated/section/training.h"
#include "runner/distributed/gradient_relay.h"
#include "runner/train/ddp_options.h"
#include "runner/train/experiment.h"
#include "runner/train/stepper_options.h"

namespace runner::train {

class BackwardSteps::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(BackwardSteps& steps, std::size_t position) : steps_(steps), position_(position) {}
  void operator()(const at::Tensor&) override { steps_.arrived(position_); }

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
  if (relay_ == nullptr) return;
  relay_->begin([this](std::size_t position, at::Tensor gradient) {
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

std::vector<bool> BackwardSteps::end_pass() { return relay_ != nullptr ? relay_->finish() : std::vector<bool>(); }

void BackwardSteps::arrived(std::size_t position) {
  if (relay_ != nullptr) return relay_->arrived(position);
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

void refuse_what_needs_gradients(const Experiment& experiment, core::Diagnostics& diagnostics) {
  if (experiment.optimizer == nullptr || !experiment.optimizer->steps_in_backward()) return;
  const core::Node& recipe = experiment.recipe;
  const std::string optimizer =
      "optimizer " + recipe.at_path("optimizer.type")->as_string() + " moves the weights while the backward pass runs";
  const auto training = sections::training::parse_config(*recipe.find("training"));
  const auto refuse = [&](const char* path, const std::string& what, const std::string& hint) {
    diagnostics.error(recipe.at_path(path)->place(), optimizer + ": " + what, hint);
  };
  const auto processes = sections::launch::parse_config(*recipe.find("launch")).num_processes;
  if (const std::int64_t most = (window_batches(recipe) + processes - 1) / processes; most > 1) {
    const core::Place& steps = recipe.at_path("training.gradient_accumulation_steps")->place();
    const bool settled = steps.known() && steps.source->kind == core::Source::Kind::kDefault;  // by the batch algebra
    refuse(
        settled && training.global_batch_size ? "training.global_batch_size" : "training.gradient_accumulation_steps",
        "there is no gradient left to accumulate, and gradient_accumulation_steps is " + std::to_string(most),
        "one larger micro_batch_size, or another optimizer");
  }
  if (const DdpOptions ddp = ddp_options(recipe); processes > 1 && ddp.exchange.has_state()) {
    refuse("ddp.comm_hook", "power_sgd adds what it left out to the next gradient, and would keep all of them",
           "comm_hook: bf16, or another optimizer");
  } else if (processes > 1 && ddp.check_reduction) {
    refuse("ddp.check_reduction", "there are never all gradients at once to compare", "leave it out");
  }
  if (training.auto_micro_batch) {
    refuse("training.auto_micro_batch", "a step that does not fit into memory cannot be taken back",
           "leave auto_micro_batch out, or use another optimizer");
  }
  for (const BuiltCallback& one : experiment.callbacks) {
    if (!one.callback->reads_gradients()) continue;
    diagnostics.error(one.place, optimizer + ": callback " + one.type + " would find no gradients",
                      "gradients: false looks at the weights alone; or another optimizer");
  }
  if (experiment.rounded_weights != nullptr) {
    refuse("precision", "it moves weights of float32, and bf16-true has others",
           "precision: bf16-mixed, or another optimizer");
  }
}

}  // namespace runner::train
