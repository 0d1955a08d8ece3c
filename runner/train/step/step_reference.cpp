#include "runner/train/step/step_reference.h"

#include <ATen/record_function.h>

#include <cstddef>
#include <utility>

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/core/error.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/step/accumulation_window.h"
#include "runner/train/step/window_pass.h"
#include "runner/train/step/without_adapters.h"

namespace runner::train {

StepReference::StepReference(const Experiment& experiment, std::unique_ptr<Experiment> other, std::string checksum)
    : experiment_(experiment), other_(std::move(other)), checksum_(std::move(checksum)) {}

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
