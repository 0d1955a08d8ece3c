#include "runner/train/reference/reference_model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "components/data/data.h"
#include "components/part/linear_term.h"
#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "generated/section/teacher.h"
#include "runner/artifact/io/checksum.h"
#include "runner/checkpoint/init_from.h"
#include "runner/core/text/text.h"
#include "runner/resolve/reference_recipe.h"
#include "runner/train/data/label_kind.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"

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

/// Whether the logits of both are of the same classes; the message is about the teacher.
void check_outputs(const Experiment& experiment, const Experiment& teacher, core::Diagnostics& diagnostics) {
  const auto last = [](const Experiment& one) {
    return components::find_spec(one.model->outputs(), components::kOutput)->shape.back();
  };
  const std::vector<std::string>&names = experiment.class_names, of_teacher = label_names(teacher.recipe);
  if (last(experiment) != last(teacher)) {
    diagnostics.error({},
                      "it has " + std::to_string(last(teacher)) + " outputs, and the model " +
                          std::to_string(last(experiment)) + ": a loss of both compares one by one",
                      "use a teacher of the same classes, or the same vocabulary");
  } else if (!names.empty() && !of_teacher.empty() && names != of_teacher) {
    diagnostics.error({},
                      "its classes are " + core::joined(of_teacher) + ", and those of the model " + core::joined(names),
                      "use a teacher of the same classes in the same order");
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
  if (reference != nullptr && compares_outputs(experiment)) check_outputs(experiment, *reference, diagnostics);
  if (reference != nullptr && weights && !on_meta) {
    checkpoint::load_init_weights(*weights, *reference->model, weight_access(*reference));
  }
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
  std::vector<components::NamedTensor> tensors;
  for (const auto& all : {experiment.model->parameters(), experiment.model->buffers()}) {
    for (const components::NamedTensor& named : all) {
      if (!components::part::is_of_term(named.name)) tensors.push_back(named);
    }
  }
  std::vector<std::string> sums(tensors.size());
  const auto read = [&] {
    if (!experiment.is_first()) return;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor values = tensors[i].tensor.detach();
      const bool is_there = values.nbytes() == 0 || values.storage().nbytes() > 0;
      if (!is_there || !sums[i].empty()) continue;
      const at::Tensor flat = values.cpu().contiguous();
      artifact::Checksum checksum;
      checksum.update(flat.const_data_ptr(), static_cast<std::int64_t>(flat.nbytes()));
      sums[i] = checksum.text();
    }
  };
  if (experiment.placement != nullptr) {
    experiment.model->visit_weights([&](const components::block::Block&) { read(); });
  } else {
    experiment.strategy != nullptr ? experiment.strategy->fill_in_parts(read) : read();
  }
  artifact::Checksum checksum;
  for (const std::string& sum : sums) checksum.update(sum.data(), static_cast<std::int64_t>(sum.size()));
  return checksum.text();
}

}  // namespace runner::train
