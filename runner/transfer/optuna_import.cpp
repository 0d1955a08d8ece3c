#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>

#include "runner/core/text/text.h"
#include "runner/transfer/optuna.h"

namespace runner::transfer {
namespace {

using core::Node;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const Node* attribute(const Node& distribution, const std::string& name) {
  const Node* attributes = distribution.find("attributes");
  return attributes == nullptr ? nullptr : attributes->find(name);
}

bool is_choice(const Node& distribution) { return attribute(distribution, "choices") != nullptr; }

/// The value that a coordinate stands for, of a choice; null where the file is wrong about it.
const Node* chosen(const OptunaParameter& parameter) {
  const Node* choices = attribute(parameter.distribution, "choices");
  const auto index = static_cast<std::size_t>(parameter.value);
  return choices == nullptr || !(parameter.value >= 0) || index >= choices->items().size() ? nullptr
                                                                                           : &choices->items()[index];
}

std::string text_of(const Node& value) { return value.is_string() ? value.as_string() : core::to_json(value, -1); }

/// `vars` takes names of letters, digits and _.
std::string variable_of(const std::string& name) {
  std::string variable;
  for (const char c : name) variable += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return variable.empty() || std::isdigit(static_cast<unsigned char>(variable[0])) != 0 ? "_" + variable : variable;
}

/// Names for `vars` by Optuna's, each its own: who has one that will do keeps it, and of others that come to the same
/// the second is numbered. `taken` has names in use.
std::map<std::string, std::string> variables_of(const std::vector<std::string>& names,
                                                std::set<std::string> taken = {}) {
  std::map<std::string, std::string> variables;
  for (const std::string& name : names) {
    if (variable_of(name) == name && taken.insert(name).second) variables[name] = name;
  }
  for (const std::string& name : names) {
    if (variables.contains(name)) continue;
    std::string variable = variable_of(name);
    for (int number = 2; !taken.insert(variable).second; ++number)
      variable = variable_of(name) + "_" + std::to_string(number);
    variables[name] = variable;
  }
  return variables;
}

/// A run_name begins with a letter or a digit, and a sweep's has at most 80 characters.
std::string run_name_of(const std::string& study) {
  const std::string name = variable_of(study);
  return (name[0] == '_' ? "study" + name : name).substr(0, 80);
}

/// The distributions of one parameter over all trials as one entry of `sweep.parameters`: they may have moved.
class Merged {
 public:
  void take(const Node& distribution) {
    const Node* name = distribution.find("name");
    integer_ = integer_ && name != nullptr && name->scalar_text() == "IntDistribution";
    if (const Node* choices = attribute(distribution, "choices")) {
      for (const Node& choice : choices->items()) take_choice(choice);
      return;
    }
    const auto number = [&distribution](const char* key) {
      const Node* value = attribute(distribution, key);
      return value != nullptr && value->is_number() ? value->as_double() : 0;
    };
    low_ = std::min(low_, number("low"));
    high_ = std::max(high_, number("high"));
    step_ = number("step");
    const Node* log = attribute(distribution, "log");
    log_ = log != nullptr && log->scalar_text() == "true";
  }

  Node node() const {
    Node node = Node::mapping();
    if (!choices_.empty() || low_ >= high_) {
      node.set("values", Node::sequence(choices_.empty() ? std::vector<Node>{number(low_)} : choices_));
      return node;
    }
    const char* kinds[] = {"uniform", "log_uniform", "int", "log_int"};
    node.set("distribution", Node::string(kinds[2 * static_cast<int>(integer_) + static_cast<int>(log_)]));
    node.set("min", number(low_));
    node.set("max", number(high_));
    if (step_ > 0 && !log_ && !(integer_ && step_ == 1)) node.set("q", number(step_));
    return node;
  }

 private:
  void take_choice(const Node& choice) {
    const bool there =
        std::any_of(choices_.begin(), choices_.end(), [&](const Node& one) { return one.same_value(choice); });
    if (!there) choices_.push_back(choice);
  }
  Node number(double value) const {
    return integer_ ? Node::integer(static_cast<std::int64_t>(value)) : Node::floating(value);
  }

  bool integer_ = true, log_ = false;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -std::numeric_limits<double>::infinity(), step_ = 0;
  std::vector<Node> choices_;
};

/// The coordinate of a dimension that a parameter gives; nothing where the space has none like it.
std::optional<double> coordinate(const OptunaParameter& parameter, const sweep::RecipeSpace& space, std::size_t index) {
  const components::sampler::Dimension& dimension = space.dimensions()[index];
  if (dimension.kind != components::sampler::Dimension::Kind::kChoice) {
    double value = parameter.value;
    if (const Node* choice = chosen(parameter)) value = choice->is_number() ? choice->as_double() : kNone;
    return dimension.has(value) ? std::optional(value) : std::nullopt;
  }
  // Numbers may be choices here and a range there, and lists are texts there.
  std::string wanted = core::to_json(Node::floating(parameter.value), -1);
  const Node* choice = chosen(parameter);
  if (choice != nullptr) wanted = text_of(*choice);
  if (choice == nullptr && is_choice(parameter.distribution)) return std::nullopt;
  for (std::int64_t i = 0; i < dimension.choices; ++i) {
    const std::string text = space.value_text(index, static_cast<double>(i));
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    const bool same_number = choice == nullptr && !text.empty() && *end == '\0' && number == parameter.value;
    if (text == wanted || same_number) return static_cast<double>(i);
  }
  return std::nullopt;
}

/// The point of a trial. Failure says what keeps it out.
core::Result<sweep::Point> point_of(const OptunaTrial& trial, const ImportOptions& options,
                                    const sweep::RecipeSpace& space) {
  const auto path_of = [&options](const OptunaParameter& parameter) {
    const auto renamed = options.paths.find(parameter.name);
    return renamed == options.paths.end() ? parameter.name : renamed->second;
  };
  sweep::Point point(space.dimensions().size(), kNone);
  std::map<std::string, std::string> used;  // name by path
  for (std::size_t i = 0; i < point.size(); ++i) {
    const std::string& path = space.dimensions()[i].name;
    const auto given = std::find_if(trial.parameters.begin(), trial.parameters.end(),
                                    [&](const OptunaParameter& parameter) { return path_of(parameter) == path; });
    if (!space.is_active(point, i)) continue;
    if (given == trial.parameters.end() && options.may_lack) continue;
    if (given == trial.parameters.end()) return core::Failure{"it has no value for " + path};
    const auto at = coordinate(*given, space, i);
    const Node* choice = chosen(*given);
    if (!at) {
      return core::Failure{path + " has no value " +
                           (choice != nullptr ? text_of(*choice) : core::to_json(Node::floating(given->value), -1))};
    }
    point[i] = *at;
    used[path] = given->name;
  }
  for (const OptunaParameter& parameter : trial.parameters) {
    const auto taken = used.find(path_of(parameter));
    if (taken == used.end()) return core::Failure{"the sweep has no parameter " + parameter.name};
    if (taken->second != parameter.name)
      return core::Failure{"both " + taken->second + " and " + parameter.name + " map to " + taken->first};
  }
  if (!space.allows(point)) return core::Failure{"it violates the sweep's constraints"};
  return point;
}

/// Why the values of a trial are no result; "" where they are.
std::string flaw_of(const std::vector<double>& values, std::size_t objectives) {
  if (values.size() != objectives) {
    return "it has " + core::counted(static_cast<std::int64_t>(values.size()), "value", "values") + " for " +
           core::counted(static_cast<std::int64_t>(objectives), "objective", "objectives");
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    return (objectives == 1 ? "its value" : "value " + std::to_string(i)) +
           (std::isnan(values[i]) ? " is nan" : " is infinite");
  }
  return "";
}

/// As a completed trial; nothing for one that has not ended.
std::optional<sweep::TrialEnd> end_of(const OptunaTrial& trial, std::size_t objectives) {
  sweep::TrialEnd end;
  if (trial.state == "COMPLETE") {
    end.state = sweep::TrialState::kComplete;
  } else if (trial.state == "PRUNED") {
    end.state = sweep::TrialState::kPruned;
  } else if (trial.state == "FAIL") {
    end.state = sweep::TrialState::kFailed;
  } else {
    return std::nullopt;
  }
  end.curve = trial.curve;
  if (!trial.curve.empty()) end.step = trial.curve.back().step;
  const std::string flaw = flaw_of(trial.values, objectives);
  if (flaw.empty()) {
    end.value = trial.values[0];
    end.others.assign(trial.values.begin() + 1, trial.values.end());
  } else if (end.state == sweep::TrialState::kPruned && objectives == 1 && !trial.curve.empty()) {
    end.value = trial.curve.back().value;
  } else if (end.state == sweep::TrialState::kComplete) {
    end.state = sweep::TrialState::kFailed;
    end.reason = flaw + " in Optuna";
  }
  for (const auto& [key, value] : trial.attributes) {
    if (key == "reason") end.reason = text_of(value);
  }
  if (end.state == sweep::TrialState::kFailed && end.reason.empty()) end.reason = "failed in Optuna";
  return end;
}

/// A mapping of these entries.
Node mapping(std::vector<std::pair<std::string, Node>> entries) {
  Node node = Node::mapping();
  for (auto& [key, value] : entries) node.set(key, std::move(value));
  return node;
}

/// The data sets of a stand-in, beside the one it trains with: one for each objective, by its name if it has one.
std::vector<std::string> data_sets_of(const OptunaStudy& study) {
  const std::size_t count = std::max<std::size_t>(study.maximize.size(), 1);
  if (count == 1) return {"val"};
  std::vector<std::string> names = study.metric_names, data_sets;
  for (std::size_t i = names.size(); i < count; ++i) names.push_back("objective_" + std::to_string(i));
  const auto variables = variables_of(names, {"train"});
  for (std::size_t i = 0; i < count; ++i) data_sets.push_back(variables.at(names[i]));
  return data_sets;
}

/// What a stand-in compares by.
Node compared(const OptunaStudy& study, const std::vector<std::string>& data_sets) {
  Node list = Node::sequence();
  for (std::size_t i = 0; i < data_sets.size(); ++i) {
    const bool maximize = i < study.maximize.size() && study.maximize[i];
    list.items().push_back(mapping(
        {{"name", Node::string(data_sets[i] + "/loss")}, {"goal", Node::string(maximize ? "maximize" : "minimize")}}));
  }
  return list;
}

}  // namespace

StandIn stand_in_for(const OptunaStudy& study, const std::string& output_dir) {
  StandIn made;
  std::vector<std::string> names;
  std::map<std::string, Merged> merged;
  for (const OptunaTrial& trial : study.trials) {
    for (const OptunaParameter& parameter : trial.parameters) {
      if (!merged.contains(parameter.name)) names.push_back(parameter.name);
      merged[parameter.name].take(parameter.distribution);
    }
  }
  Node vars = Node::mapping(), parameters = Node::mapping();
  for (const auto& [name, variable] : variables_of(names)) made.paths[name] = "vars." + variable;
  for (const std::string& name : names) {
    Node entry = merged[name].node();
    const Node* values = entry.find("values");
    vars.set(made.paths[name].substr(std::string("vars.").size()),
             values != nullptr ? values->items().front() : *entry.find("min"));
    parameters.set(made.paths[name], std::move(entry));
  }
  const std::vector<std::string> data_sets = data_sets_of(study);
  Node data = Node::mapping();
  const Node one = mapping({{"type", Node::string("synthetic")}, {"task", Node::string("regression")}});
  data.set("train", one);
  for (const std::string& name : data_sets) data.set(name, one);
  const auto ended = std::count_if(study.trials.begin(), study.trials.end(), [&](const OptunaTrial& trial) {
    return end_of(trial, data_sets.size()).has_value();
  });
  Node sweep = mapping({{"sampler", Node::string("random")},
                        {"n_trials", Node::integer(std::max<std::int64_t>(ended, 1))},
                        {"parameters", std::move(parameters)}});
  Node list = compared(study, data_sets);
  list.items().size() == 1 ? sweep.set("metric", list.items().front()) : sweep.set("objectives", std::move(list));
  made.recipe =
      mapping({{"run_name", Node::string(run_name_of(study.name))},
               {"output_dir", Node::string(output_dir)},
               {"vars", std::move(vars)},
               {"model", mapping({{"type", Node::string("mlp")}, {"hidden", Node::sequence({Node::integer(1)})}})},
               {"data", std::move(data)},
               {"loss", Node::string("mse")},
               {"optimizer", mapping({{"type", Node::string("sgd")}, {"lr", Node::floating(0.1)}})},
               {"training", mapping({{"max_steps", Node::integer(1)}, {"micro_batch_size", Node::integer(1)}})},
               {"sweep", std::move(sweep)}});
  return made;
}

std::map<std::string, std::string> numbered_paths(const std::map<std::string, std::string>& paths) {
  std::map<std::string, std::string> numbered;
  for (const auto& [name, path] : paths) {
    if (path != "vars." + variable_of(name)) numbered[name] = path;
  }
  return numbered;
}

Importable importable(const OptunaStudy& from, const ImportOptions& options, const sweep::RecipeSpace& space) {
  Importable found;
  found.objectives = std::max<std::size_t>(from.maximize.size(), 1);
  for (std::size_t i = 0; i < from.trials.size(); ++i) {
    const auto point = end_of(from.trials[i], found.objectives)
                           ? point_of(from.trials[i], options, space)
                           : core::Result<sweep::Point>(core::Failure{"it has not ended"});
    if (point) {
      found.trials.emplace_back(&from.trials[i], point.value());
    } else {
      found.left_out.push_back("trial " + std::to_string(i) + ": " + point.failure().message);
    }
  }
  return found;
}

void import_trials(const Importable& from, const sweep::RecipeSpace& space, sweep::Study& study) {
  study.add_worker(study.info().created_ms);
  for (const auto& [trial, point] : from.trials) {
    sweep::Study::Demand demand;
    demand.now_ms = trial->started_ms;
    demand.variants_max = std::numeric_limits<std::int64_t>::max();
    demand.propose = [&space, &point](const std::vector<sweep::Variant>& before, const std::vector<sweep::Trial>&) {
      return std::optional(sweep::Variant{static_cast<std::int64_t>(before.size()), point, space.text(point)});
    };
    const auto claimed = study.claim(demand);
    study.end(claimed->number, *end_of(*trial, from.objectives), std::max(trial->ended_ms, trial->started_ms));
  }
  study.unregister_worker();
}

}  // namespace runner::transfer
