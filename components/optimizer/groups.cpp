// How a recipe's patterns split the parameters into groups.

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "runner/core/language/name_map.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"

namespace components::optimizer {
namespace {

using runner::core::Node;

bool ends_with_part(std::string_view name, std::string_view part) {
  if (!name.ends_with(part)) return false;
  return name.size() == part.size() || name[name.size() - part.size() - 1] == '.';
}

/// One text or a list of them, each with its location.
std::vector<const Node*> texts(const Node* node) {
  std::vector<const Node*> all;
  if (node == nullptr || node->is_null()) return all;
  if (node->is_string()) return {node};
  for (const Node& item : node->items()) all.push_back(&item);
  return all;
}

std::optional<double> number(const Node& block, const char* key) {
  const Node* node = block.find(key);
  if (node == nullptr || node->is_null()) return std::nullopt;
  return node->as_double();
}

std::optional<std::array<double, 2>> pair(const Node& block, const char* key) {
  const Node* node = block.find(key);
  if (node == nullptr || node->is_null()) return std::nullopt;
  return std::array{node->items()[0].as_double(), node->items()[1].as_double()};
}

/// Group settings that only some optimizers support.
struct GroupKey {
  const char* key;
  std::vector<std::string> types;
  const char* have;
};

std::vector<GroupKey> group_keys() {
  return {{"momentum", {"sgd", "rmsprop"}, " have one"},
          {"betas", {"adam", "adamw", "adamw_8bit"}, " have them"},
          {"eps", {"adam", "adamw", "adamw_8bit"}, " have one"}};
}

/// a, b and c
std::string in_words(std::vector<std::string> types) {
  const std::string last = types.back();
  types.pop_back();
  return runner::core::joined(types) + " and " + last;
}

void refuse_foreign_keys(const Node& block, const Node& group, runner::core::Diagnostics& diagnostics) {
  const std::string& type = block.find("type")->as_string();
  for (const GroupKey& known : group_keys()) {
    const Node* given = group.find(known.key);
    if (given == nullptr || given->is_null()) continue;
    if (std::find(known.types.begin(), known.types.end(), type) != known.types.end()) continue;
    diagnostics.error(given->location(), "optimizer " + type + " has no " + known.key + " of a group",
                      in_words(known.types) + known.have);
  }
}

class Cutter {
 public:
  Cutter(const std::vector<NamedTensor>& parameters, const std::vector<std::string>& frozen,
         runner::core::Diagnostics& diagnostics)
      : parameters_(parameters), frozen_(frozen), diagnostics_(diagnostics) {
    for (const NamedTensor& parameter : parameters) {
      names_.push_back(parameter.name);
      // A one-dimensional `weight` is a norm's scale; its siblings belong to the same norm.
      if (ends_with_part(parameter.name, "weight") && parameter.tensor.dim() < 2) {
        norms_.insert(parameter.name.substr(0, parameter.name.size() - std::string("weight").size()));
      }
    }
  }

  /// Which parameters a pattern names; an error when there are none.
  std::vector<bool> named(const Node& pattern) {
    std::vector<bool> chosen(parameters_.size());
    bool any = false;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      chosen[i] = runner::core::matches_wildcard(pattern.as_string(), names_[i]);
      any = any || chosen[i];
    }
    if (!any && !names_frozen(pattern)) {
      diagnostics_.error(pattern.location(), "no parameter is called \"" + pattern.as_string() + "\"", hint(pattern));
    }
    return chosen;
  }

  /// Whether a pattern names a frozen parameter.
  bool names_frozen(const Node& pattern) const {
    return std::any_of(frozen_.begin(), frozen_.end(), [&pattern](const std::string& name) {
      return runner::core::matches_wildcard(pattern.as_string(), name);
    });
  }

  /// The same for `no_decay`, where some words are rules. A rule may choose nothing.
  std::vector<bool> without_decay(const Node& word) {
    const std::string& text = word.as_string();
    if (text != "1d" && text != "bias" && text != "norm") return named(word);
    std::vector<bool> chosen(parameters_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (text == "1d") chosen[i] = parameters_[i].tensor.dim() < 2;
      if (text == "bias") chosen[i] = ends_with_part(names_[i], "bias");
      if (text == "norm") chosen[i] = norms_.contains(names_[i].substr(0, names_[i].rfind('.') + 1));
    }
    return chosen;
  }

 private:
  std::string hint(const Node& pattern) const {
    const std::string near = runner::core::closest(pattern.as_string(), names_);
    if (!near.empty()) return "did you mean \"" + near + "\"? `*` matches any text";
    return "the parameters are called " + runner::core::joined_first(names_, 3) + "; `*` matches any text";
  }

  const std::vector<NamedTensor>& parameters_;
  const std::vector<std::string>& frozen_;
  runner::core::Diagnostics& diagnostics_;
  std::vector<std::string> names_;
  std::set<std::string> norms_;  // prefixes with their dot
};

}  // namespace

std::vector<ParamGroup> make_param_groups(const Node& block, const std::vector<NamedTensor>& parameters,
                                          runner::core::Diagnostics& diagnostics,
                                          const std::vector<std::string>& frozen) {
  Cutter cutter(parameters, frozen, diagnostics);
  // Written groups first as seen by a parameter (the first match wins), but listed after the two that have no pattern.
  std::vector<ParamGroup> groups{{"default", {}, {}, {}, {}}, {"no_decay", {}, {}, 0.0, {}}};
  std::vector<std::size_t> group_of(parameters.size(), 0);
  const Node* written = block.find("param_groups");
  const std::vector<Node> none;
  for (const Node& item : written != nullptr ? written->items() : none) {
    std::string name;
    for (const Node* pattern : texts(item.find("pattern"))) {
      name += (name.empty() ? "" : ", ") + pattern->as_string();
      const std::vector<bool> chosen = cutter.named(*pattern);
      if (cutter.names_frozen(*pattern) && std::find(chosen.begin(), chosen.end(), true) == chosen.end()) {
        diagnostics.warning(pattern->location(),
                            "\"" + pattern->as_string() +
                                "\" names only parameters that training.freeze or "
                                "train_only freezes",
                            "leave it out, or train what it names");
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (chosen[i] && group_of[i] == 0) group_of[i] = groups.size();
      }
    }
    groups.push_back({name,
                      {},
                      number(item, "lr"),
                      number(item, "weight_decay"),
                      number(item, "momentum"),
                      pair(item, "betas"),
                      number(item, "eps")});
    refuse_foreign_keys(block, item, diagnostics);
  }

  std::vector<bool> undecayed(parameters.size());
  for (const Node* word : texts(block.find("no_decay"))) {
    const std::vector<bool> chosen = cutter.without_decay(*word);
    for (std::size_t i = 0; i < parameters.size(); ++i) undecayed[i] = undecayed[i] || chosen[i];
  }
  // A written group with a decay of its own keeps it; any other is parted in two.
  std::vector<std::size_t> parted(groups.size(), 0);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::size_t group = group_of[i];
    if (undecayed[i] && group == 0) {
      group = 1;
    } else if (undecayed[i] && !groups[group].weight_decay) {
      if (parted[group] == 0) {
        parted[group] = groups.size();
        ParamGroup without_decay = groups[group];
        without_decay.name += ", no_decay";
        without_decay.parameters.clear();
        without_decay.weight_decay = 0.0;
        groups.push_back(std::move(without_decay));
      }
      group = parted[group];
    }
    groups[group].parameters.push_back(parameters[i]);
  }
  std::erase_if(groups, [](const ParamGroup& group) { return group.parameters.empty(); });
  if (groups.empty()) groups.push_back({"default", {}, {}, {}, {}});
  return groups;
}

}  // namespace components::optimizer
