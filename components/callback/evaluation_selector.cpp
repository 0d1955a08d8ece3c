#include "components/callback/evaluation_selector.h"

#include <algorithm>

#include "components/tensor/judged.h"
#include "runner/core/text/suggest.h"

namespace components::callback {
namespace {

using runner::core::Node;

constexpr std::int64_t kDenseLooks = 64;

/// Every evaluated data set has a loss: `val/loss`.
std::vector<std::string> evaluated_sets(const std::vector<std::string>& metric_names) {
  constexpr std::string_view kLoss = "/loss";
  std::vector<std::string> sets;
  for (const std::string& name : metric_names) {
    if (name.ends_with(kLoss)) sets.push_back(name.substr(0, name.size() - kLoss.size()));
  }
  return sets;
}

}  // namespace

bool EvaluationSelector::is_selected() const {
  const std::int64_t number = done_ + 1;
  if (number % every_ != 0) return false;
  const std::int64_t look = number / every_;
  std::int64_t stride = 1;
  for (std::int64_t dense = kDenseLooks; look > dense; dense *= 2) stride *= 2;
  return look % stride == 0;
}

bool EvaluationSelector::selects(const std::string& data_set) const {
  const bool meant =
      data_sets_.empty() || std::find(data_sets_.begin(), data_sets_.end(), data_set) != data_sets_.end();
  return meant && is_selected();
}

void EvaluationSelector::save_state(runner::core::StateWriter& writer) const {
  writer.value("evaluations", Node::integer(done_));
}

void EvaluationSelector::load_state(const runner::core::StateReader& reader) {
  done_ = reader.value("evaluations").as_integer();
}

bool check_data_sets(const std::vector<std::string>& data_sets, const std::string& name, const Inputs& inputs) {
  const std::vector<std::string> evaluated = evaluated_sets(inputs.metric_names);
  if (evaluated.empty()) {
    inputs.diagnostics.error(inputs.block.location(),
                             name + " needs an evaluated data set, but train is the only data set",
                             "add a data set, such as data.val");
    return false;
  }
  bool all = true;
  for (std::size_t i = 0; i < data_sets.size(); ++i) {
    if (std::find(evaluated.begin(), evaluated.end(), data_sets[i]) != evaluated.end()) continue;
    all = false;
    const Node* place = inputs.block.at_path("data[" + std::to_string(i) + "]");
    std::string hint = "this recipe evaluates ";
    for (std::size_t k = 0; k < evaluated.size(); ++k) hint += (k == 0 ? "" : ", ") + evaluated[k];
    const std::string near = runner::core::closest(data_sets[i], evaluated);
    if (!near.empty()) hint = "did you mean \"" + near + "\"?";
    inputs.diagnostics.error(place != nullptr ? place->location() : inputs.block.location(),
                             "no evaluated data set is called \"" + data_sets[i] + "\"", hint);
  }
  return all;
}

void check_output_and_target(const model::Model& model, const data::Dataset& train_data, const Node& block,
                             runner::core::Diagnostics& diagnostics) {
  Judged{model.outputs(), train_data.signature(), block, diagnostics}.have({kOutput, kTarget});
}

}  // namespace components::callback
