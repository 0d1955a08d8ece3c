#include "runner/train/reference/reference_model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "components/part/linear_term.h"
#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "generated/section/teacher.h"
#include "runner/artifact/io/checksum.h"
#include "runner/checkpoint/init_from.h"
#include "runner/resolve/reference_recipe.h"
#include "runner/train/experiment/experiment.h"

namespace runner::train {
namespace {

using core::Node;

/// Whether adapters alone are trained, so that leaving them out leaves a model as it began.
bool trains_adapters_alone(const Experiment& experiment) {
  const components::NamedTensors trained = experiment.model->trained_parameters();
  return !experiment.adapters.empty() && std::all_of(trained.begin(), trained.end(), [](const auto& parameter) {
    return components::part::is_of_term(parameter.name);
  });
}

/// Messages about a teacher are about the line that names it.
void pass_on(const core::Diagnostics& found, const resolve::Recipe& recipe, core::Diagnostics& diagnostics) {
  if (!recipe.teacher) return diagnostics.add_all(found);
  for (const core::Diagnostic& one : found.all()) {
    if (one.severity != core::Severity::kError) continue;
    diagnostics.error(recipe.location("teacher.init_from"), "teacher: " + one.message, one.hint);
  }
}

std::unique_ptr<Experiment> build(const Experiment& experiment, bool on_meta, core::Diagnostics& diagnostics) {
  const auto recipe = resolve::reference_recipe(experiment.recipe, diagnostics);
  if (!recipe) return nullptr;
  std::optional<checkpoint::InitWeights> weights;
  BuildOptions options;
  options.meta = on_meta;
  options.for_training = false;
  options.data_of = &experiment;
  options.local_rank = experiment.local_rank;
  options.ranks = experiment.ranks;
  options.check_model = [&](const components::model::Model& model, const std::set<std::string>&) {
    weights = checkpoint::plan_init_from(*recipe->init_from, recipe->at("init_from"), recipe->root, model,
                                         recipe->output_dir, diagnostics);
    return !diagnostics.has_errors();
  };
  auto reference = build_experiment(*recipe, options, diagnostics);
  if (reference != nullptr && weights && !on_meta) checkpoint::load_init_weights(*weights, *reference->model);
  return reference;
}

}  // namespace

bool is_own_reference(const Experiment& experiment, bool trained) {
  const resolve::Recipe& recipe = experiment.recipe;
  if (recipe.teacher) return false;
  if (trains_adapters_alone(experiment)) return true;
  const bool continues = std::any_of(recipe.adapters.begin(), recipe.adapters.end(), [](const Node& block) {
    const Node* path = block.find("path");
    return path != nullptr && !path->is_null();
  });
  return !trained && !continues;
}

std::unique_ptr<Experiment> build_reference_model(const Experiment& experiment, bool on_meta,
                                                  core::Diagnostics& diagnostics) {
  const auto random = components::RandomState::now(experiment.device);
  core::Diagnostics found;
  auto reference = build(experiment, on_meta, found);
  random.restore();
  pass_on(found, experiment.recipe, diagnostics);
  return found.has_errors() ? nullptr : std::move(reference);
}

std::string checksum_of_weights(const Experiment& experiment) {
  artifact::Checksum checksum;
  for (const auto& tensors : {experiment.model->parameters(), experiment.model->buffers()}) {
    for (const components::NamedTensor& named : tensors) {
      if (components::part::is_of_term(named.name)) continue;
      const at::Tensor values = named.tensor.detach().cpu().contiguous();
      checksum.update(values.const_data_ptr(), static_cast<std::int64_t>(values.nbytes()));
    }
  }
  return checksum.text();
}

}  // namespace runner::train
