#include "runner/train/experiment/memory/model_state.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>

#include "components/block/quantized.h"
#include "components/model/model.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "runner/train/placement/block_places.h"

namespace runner::train {

namespace {

/// Of the parameters that `counts` is true for, by name.
template <class Counts>
ModelState model_state(const Experiment& experiment, const Counts& counts) {
  ModelState state;
  std::vector<std::string> frozen;
  components::NamedTensors moved;  // as the optimizer has them, which a strategy may have given rows alone
  for (const components::NamedTensor& parameter : experiment.model->parameters()) {
    if (!counts(parameter.name)) {
      frozen.push_back(parameter.name);  // as far as the optimizer knows
      continue;
    }
    const auto bytes = static_cast<double>(parameter.tensor.nbytes());
    if (experiment.places != nullptr && experiment.places->travelling.contains(parameter.name)) {
      frozen.push_back(parameter.name);
      continue;
    }
    state.weights += bytes;
    if (!parameter.tensor.requires_grad()) {
      frozen.push_back(parameter.name);
      continue;
    }
    state.gradients += bytes;
    const auto options = at::TensorOptions().device(at::kMeta).dtype(at::kFloat);
    moved.push_back({parameter.name, at::empty(parameter.tensor.sizes(), options)});
  }
  if (moved.empty()) return state;
  core::Diagnostics told;  // what there is to say was said of the experiment's own optimizer
  const core::Node& optimizer = experiment.recipe.optimizer;
  auto groups = components::optimizer::make_param_groups(optimizer, moved, told, frozen);
  state.optimizer = static_cast<double>(components::optimizer::build(optimizer, {std::move(groups)})->state_bytes());
  return state;
}

}  // namespace

ModelState held_by_stage(const ModelState& whole, int stage, int processes, const ModelState& replicated) {
  const auto part = [&](double bytes, double kept, int from_stage) {
    return stage >= from_stage ? (bytes - kept) / processes + kept : bytes;
  };
  return {part(whole.weights, replicated.weights, 3), part(whole.gradients, replicated.gradients, 2),
          part(whole.optimizer, replicated.optimizer, 1)};
}

ModelState whole_model_state(const Experiment& experiment) {
  ModelState state = model_state(experiment, [](const std::string&) { return true; });
  state.weights += static_cast<double>(components::block::quantized_bytes(experiment.model->blocks()));
  if (experiment.places != nullptr) state.weights += static_cast<double>(experiment.places->room_bytes);
  return state;
}

ModelState replicated_model_state(const Experiment& experiment) {
  ModelState state =
      model_state(experiment, [&](const std::string& name) { return experiment.replicated.contains(name); });
  state.weights += static_cast<double>(components::block::quantized_bytes(experiment.model->blocks()));
  return state;
}

}  // namespace runner::train
