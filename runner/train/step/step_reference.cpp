#include "runner/train/step/step_reference.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <utility>

#include "components/loss/loss.h"
#include "components/model/model.h"
#include "components/tensor/teacher.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/core/error.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/step/accumulation_window.h"
#include "runner/train/step/window_pass.h"
#include "runner/train/step/without_adapters.h"

namespace runner::train {

StepReference::StepReference(const Experiment& experiment, std::unique_ptr<Experiment> other, std::string checksum)
    : experiment_(experiment), other_(std::move(other)), checksum_(std::move(checksum)) {
  if (compares_outputs(experiment_)) other_->model->set_training(false);
}

StepReference::~StepReference() = default;

void StepReference::add_to(AccumulationWindow& window, const components::AutocastOptions& autocast) const {
  RECORD_USER_SCOPE("reference");
  const Experiment& asked = other_ != nullptr ? *other_ : experiment_;
  const WithoutAdapters without(*asked.model);
  pass_over_window({experiment_, *asked.model, window, autocast},
                   [&](std::size_t micro, const components::TensorMap& tensors) {
                     window.set_reference(micro, experiment_.loss->reference_of(tensors).cpu());
                   });
}

void StepReference::add_outputs(components::TensorMap& batch, const components::AutocastOptions& autocast,
                                bool whole) const {
  RECORD_USER_SCOPE("teacher");
  RUNNER_ASSERT(other_ != nullptr, "a loss of outputs has a teacher");
  const at::NoGradGuard no_grad;
  components::TensorMap tensors = batch;
  {
    const components::Autocast as_trained(autocast);
    whole || autocast.by_block ? other_->model->forward(tensors) : other_->model->forward_for_loss(tensors);
  }
  constexpr std::pair<const char*, const char*> kLeft[] = {{components::kOutput, components::kTeacherOutput},
                                                           {components::kHidden, components::kTeacherHidden},
                                                           {components::kProjection, components::kTeacherProjection}};
  for (const auto& [left, name] : kLeft) {
    if (const at::Tensor* tensor = tensors.find(left)) batch.set(name, *tensor);
  }
}

void StepReference::expect(const std::string& checksum) const {
  if (checksum.empty() || checksum_.empty() || checksum == checksum_) return;
  const resolve::Recipe& recipe = experiment_.recipe;
  const std::string remedy = recipe.teacher           ? "restore those that teacher names"
                             : recipe.init_from->path ? "restore those that init_from names"
                                                      : "keep the seed that they were drawn from";
  throw core::RunError("the weights of the reference have changed since the training began",
                       remedy + ", or start a new run with --new", core::kExitUsage);
}

}  // namespace runner::train
