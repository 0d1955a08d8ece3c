#include "runner/train/experiment/tensor_names.h"

#include <string>
#include <vector>

#include "components/tensor/judged.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/teacher.h"
#include "generated/section/eval.h"
#include "runner/registry/config_parse.h"
#include "runner/train/experiment/experiment.h"

namespace runner::train {
namespace {

using components::BatchSpec;
using components::TensorSpec;
using core::Diagnostics;
using core::Node;

/// Who reads tensors of a batch, and which.
struct Reader {
  const Node& block;
  std::vector<std::string> names;
};

std::vector<std::string> list_names(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return names;
}

void check_set(const Reader& reader, const std::vector<TensorSpec>& outputs, const std::string& set,
               const BatchSpec& given, Diagnostics& diagnostics) {
  for (const std::string& name : reader.names) {
    if (find_spec(outputs, name) != nullptr || given.find(name) != nullptr) continue;
    if (name == components::kRejectedAt || name == components::kDesirable) {
      const bool are_pairs = name == components::kRejectedAt;
      diagnostics.error(reader.block.location(),
                        registry::type_of(reader.block) + " needs " +
                            (are_pairs ? "pairs of a chosen and a rejected completion" : "records with a label") +
                            ", but data." + set + " has none",
                        are_pairs ? "give it records with prompt, chosen and rejected, or remove it"
                                  : "give it records with prompt, completion and label, or remove it");
      return;  // what else it lacks comes with these
    }
    const bool is_made = name == components::loss::kEstimate || name == components::kTeacherOutput;
    if (is_made) continue;  // by the training and evaluations themselves
    if (name == components::kReferenceChosen || name == components::kReferenceRejected) continue;  // of these pairs
    diagnostics.error(reader.block.location(),
                      registry::type_of(reader.block) + " reads \"" + name + "\", which data." + set + " does not give",
                      "it gives " + components::names_of(given.tensors) +
                          ": add the tensor to the data set, or use what reads these");
  }
}

/// Without them, documents of a row would see each other.
void check_packing(const Experiment& experiment, const std::string& set, const BatchSpec& given,
                   Diagnostics& diagnostics) {
  if (given.find(components::kPositions) == nullptr) return;
  if (find_spec(experiment.model->inputs(), components::kPositions) != nullptr) return;
  diagnostics.error(experiment.recipe.location("data." + set),
                    "data." + set + " packs several records into a row, and model " +
                        registry::type_of(experiment.recipe.model) + " does not read \"" + components::kPositions +
                        "\", by which it would tell them apart",
                    "remove packing, or use a model such as gpt, llama or transformers");
}

/// Of a set; new rows are read as the training set is.
core::Location place_of(const Experiment& experiment, const std::string& set) {
  return experiment.recipe.location("data." + (set == kNewRows ? "train" : set));
}

/// A model is made for the tensors of data.train. Would it read more, if data.train had what another set has?
void check_left_out(const Experiment& experiment, const NamedDataset& set, Diagnostics& diagnostics) {
  const BatchSpec& of_train = experiment.train_data->signature();
  BatchSpec both = of_train;
  for (const TensorSpec& port : set.data->signature().tensors) {
    if (of_train.find(port.name) == nullptr) both.tensors.push_back(port);
  }
  if (both.tensors.size() == of_train.tensors.size()) return;
  const Node& block = experiment.recipe.model;
  Diagnostics told_before;
  components::part::MetaWeights shapes;
  const auto model = components::model::build(block, {both, shapes, block, told_before});
  if (model == nullptr) return;
  for (const TensorSpec& port : model->inputs()) {
    if (of_train.find(port.name) != nullptr || both.find(port.name) == nullptr) continue;
    diagnostics.error(place_of(experiment, set.name),
                      "data." + set.name + " gives \"" + port.name + "\", which model " + registry::type_of(block) +
                          " reads, and data.train does not give it",
                      port.name == components::kPositions
                          ? "give data.train packing: true, too, or neither"
                          : "let data.train give it, too, so that the model is made to read it");
  }
}

}  // namespace

BatchSpec joint_signature(const Experiment& experiment) {
  BatchSpec joint = experiment.train_data->signature();
  for (const NamedDataset& set : experiment.eval_data) {
    for (TensorSpec& port : joint.tensors) {
      const TensorSpec* other = set.data->signature().find(port.name);
      if (other == nullptr) continue;
      port.padded = port.padded || other->padded;
      port.has_ignored = port.has_ignored || other->has_ignored;
      port.scattered = port.scattered || other->scattered;
    }
  }
  return joint;
}

void check_tensor_names(const Experiment& experiment, Diagnostics& diagnostics) {
  const resolve::Recipe& recipe = experiment.recipe;
  const std::vector<TensorSpec> outputs = experiment.model->outputs();
  std::vector<Reader> readers = {{recipe.model, list_names(experiment.model->inputs())}};
  if (experiment.loss != nullptr) readers.push_back({recipe.loss, experiment.loss->reads()});
  // A metric that could not be built has said why.
  const std::vector<Node>& metrics = recipe.eval->metrics;
  for (std::size_t i = 0; i < metrics.size() && metrics.size() == experiment.metrics.size(); ++i) {
    readers.push_back({metrics[i], experiment.metrics[i]->reads()});
  }
  const auto check = [&](const std::string& set, const BatchSpec& given) {
    for (const Reader& reader : readers) {
      const bool is_model = &reader == &readers.front();
      check_set(reader, is_model ? std::vector<TensorSpec>{} : outputs, set, given, diagnostics);
    }
  };
  const int errors = diagnostics.error_count();
  check("train", experiment.train_data->signature());
  check_packing(experiment, "train", experiment.train_data->signature(), diagnostics);
  if (diagnostics.error_count() > errors) return;  // the other sets would repeat it
  for (const NamedDataset& set : experiment.eval_data) {
    check(set.name, set.data->signature());
    check_left_out(experiment, set, diagnostics);
  }
}

}  // namespace runner::train
