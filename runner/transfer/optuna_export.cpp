#include <algorithm>
#include <cmath>
#include <limits>

#include "runner/transfer/optuna.h"

namespace runner::transfer {
namespace {

using core::Node;

Node described(const char* name, Node attributes) {
  Node node = Node::mapping();
  node.set("name", Node::string(name));
  node.set("attributes", std::move(attributes));
  return node;
}

/// Text, numbers, true, false and null are choices of Optuna; anything else is told as text.
Node choice(const sweep::RecipeSpace& space, std::size_t dimension, std::int64_t index) {
  sweep::Point point(space.dimensions().size(), std::numeric_limits<double>::quiet_NaN());
  point[dimension] = static_cast<double>(index);
  const std::vector<sweep::Assignment> values = space.assignments(point);
  if (values.size() == 1 && !values[0].value.is_mapping() && !values[0].value.is_sequence()) return values[0].value;
  return Node::string(space.value_text(dimension, static_cast<double>(index)));
}

Node choices(const sweep::RecipeSpace& space, std::size_t dimension) {
  Node list = Node::sequence();
  for (std::int64_t i = 0; i < space.dimensions()[dimension].choices; ++i)
    list.items().push_back(choice(space, dimension, i));
  Node attributes = Node::mapping();
  attributes.set("choices", std::move(list));
  return described("CategoricalDistribution", std::move(attributes));
}

/// Optuna has no steps on a logarithmic axis, and of integers always some.
Node numbers(const components::sampler::Dimension& dimension, double low, double high) {
  const bool integer = dimension.kind == components::sampler::Dimension::Kind::kInteger;
  const bool stepped = dimension.step > 0 && !dimension.log;
  const auto number = [integer](double value) {
    return integer ? Node::integer(static_cast<std::int64_t>(value)) : Node::floating(value);
  };
  Node attributes = Node::mapping();
  attributes.set("log", Node::boolean(dimension.log));
  attributes.set("step", stepped ? number(dimension.step) : integer ? Node::integer(1) : Node::null());
  attributes.set("low", number(low));
  attributes.set("high", number(high));
  return described(integer ? "IntDistribution" : "FloatDistribution", std::move(attributes));
}

Node distribution(const sweep::RecipeSpace& space, std::size_t index, const std::vector<sweep::Variant>& variants) {
  const components::sampler::Dimension& dimension = space.dimensions()[index];
  if (dimension.kind == components::sampler::Dimension::Kind::kChoice) return choices(space, index);
  if (dimension.kind != components::sampler::Dimension::Kind::kNormal) {
    // The last step may lie below `max`, and Optuna would move its end there with a warning.
    const bool stepped = dimension.step > 0 && !dimension.log;
    return numbers(dimension, dimension.min, stepped ? dimension.nth(dimension.count() - 1) : dimension.max);
  }
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const sweep::Variant& variant : variants) {
    if (std::isnan(variant.point[index])) continue;
    low = std::min(low, variant.point[index]);
    high = std::max(high, variant.point[index]);
  }
  components::sampler::Dimension uniform = dimension;
  uniform.step = 0;
  return numbers(uniform, low, high);
}

std::string state_of(sweep::TrialState state) {
  switch (state) {
    case sweep::TrialState::kWaiting: return "WAITING";
    case sweep::TrialState::kRunning: return "RUNNING";
    case sweep::TrialState::kComplete: return "COMPLETE";
    case sweep::TrialState::kPruned: return "PRUNED";
    case sweep::TrialState::kFailed: return "FAIL";
  }
  return "";
}

}  // namespace

OptunaStudy to_optuna(const sweep::Sweep& sweep, sweep::Study& study) {
  const sweep::RecipeSpace& space = sweep.space();
  const auto& variants = study.variants();
  std::vector<Node> distributions;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) distributions.push_back(distribution(space, i, variants));
  OptunaStudy out;
  out.name = study.info().name;
  for (const sweep::Metric& objective : sweep.objectives()) {
    out.maximize.push_back(objective.maximize);
    out.metric_names.push_back(objective.name);
  }
  if (out.metric_names.size() == 1) out.metric_names.clear();  // Optuna's tables call it `value`
  for (const sweep::Trial& trial : study.trials()) {
    OptunaTrial one;
    one.state = state_of(trial.state);
    one.started_ms = trial.started_ms;
    one.ended_ms = trial.ended_ms;
    const sweep::Point& point = variants.at(static_cast<std::size_t>(trial.variant)).point;
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (!std::isnan(point[i])) one.parameters.push_back({space.dimensions()[i].name, point[i], distributions[i]});
    }
    const bool has_value = trial.state == sweep::TrialState::kComplete || trial.state == sweep::TrialState::kPruned;
    if (has_value && trial.value) one.values = {*trial.value};
    if (has_value && trial.value) one.values.insert(one.values.end(), trial.others.begin(), trial.others.end());
    one.curve = study.curve(trial.number);
    one.attributes = {{"run", Node::string(trial.run)},
                      {"variant", Node::integer(trial.variant)},
                      {"seed", Node::integer(sweep.base().at("seed").as_integer() + trial.replicate)}};
    if (!trial.reason.empty()) one.attributes.emplace_back("reason", Node::string(trial.reason));
    out.trials.push_back(std::move(one));
  }
  return out;
}

}  // namespace runner::transfer
