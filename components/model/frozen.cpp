#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/model/model.h"
#include "components/part/linear_term.h"
#include "components/tensor/tensors.h"
#include "runner/core/language/name_map.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/model_type.h"

namespace components::model {
namespace {

using runner::core::Diagnostics;
using runner::core::matches_wildcard;
using runner::core::Node;
using runner::pretrained::ModelType;
using runner::pretrained::WeightRule;

constexpr std::size_t kNamesShown = 3, kPartsShown = 3;

/// A parameter under all its names.
struct Named {
  NamedTensor parameter;
  std::vector<std::string> names;               ///< each of them is the whole
  std::vector<std::vector<std::string>> parts;  ///< of those that are joined in it: the names of each
};

bool matches_any(const std::string& pattern, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&pattern](const std::string& name) { return matches_wildcard(pattern, name); });
}

/// In Transformers, whole and as the base model has it.
std::vector<std::string> names_of(const ModelType& type, const std::string& pattern, std::int64_t number) {
  std::vector<std::string> names = {runner::pretrained::with_number(pattern, number)};
  if (names[0].starts_with(type.prefix)) names.push_back(names[0].substr(type.prefix.size()));
  return names;
}

/// `h.{i}.attn_qkv.q_proj` of `h.{i}.attn_qkv.weight` and `model.layers.{i}.self_attn.q_proj.weight`, where several
/// are joined.
std::string term_layer(const WeightRule& rule, const std::string& module) {
  const std::string own = rule.name.substr(0, rule.name.rfind('.'));
  return rule.from.size() > 1 ? own + module.substr(module.rfind('.')) : own;
}

/// Of what was added to a linear layer: after that layer.
void add_term_names(const ModelType& type, const std::string& name, Named& named) {
  const std::string what = name.substr(name.rfind(".lora_"));
  for (const WeightRule& rule : type.weights) {
    if (!rule.name.ends_with(".weight")) continue;
    for (const std::string& from : rule.from) {
      const std::string module = from.substr(0, from.rfind('.'));
      const auto number = runner::pretrained::number_in(term_layer(rule, module) + what, name);
      if (!number) continue;
      const std::vector<std::string> names = names_of(type, module + what, *number);
      named.names.insert(named.names.end(), names.begin(), names.end());
    }
  }
}

/// Of a stack of experts: the stack as a whole, and each matrix of each expert.
void add_expert_names(const ModelType& type, const WeightRule& rule, std::int64_t number, std::int64_t experts,
                      Named& named) {
  const std::vector<std::string> whole = names_of(type, rule.stacked, number);
  named.names.insert(named.names.end(), whole.begin(), whole.end());
  for (const std::string& part : rule.parts(number, experts)) named.parts.push_back(names_of(type, part, number));
}

/// `size`: of the parameter's first dimension.
void add_names(const ModelType& type, const std::string& name, std::int64_t size, Named& named) {
  if (part::is_of_term(name)) return add_term_names(type, name, named);
  for (const WeightRule& rule : type.weights) {
    const std::optional<std::int64_t> number = runner::pretrained::number_in(rule.name, name);
    if (!number) continue;
    if (rule.is_of_experts()) return add_expert_names(type, rule, *number, size, named);
    std::vector<std::vector<std::string>> parts;
    for (const std::string& from : rule.from) parts.push_back(names_of(type, from, *number));
    if (parts.size() == 1) {
      named.names.insert(named.names.end(), parts[0].begin(), parts[0].end());
    } else {
      named.parts = std::move(parts);
    }
  }
}

std::vector<Named> all_names(const Model& model, const Node& block) {
  const ModelType* type = runner::pretrained::model_type_of(block);
  std::vector<Named> all;
  for (NamedTensor& parameter : model.parameters()) {
    Named named{{}, {parameter.name}, {}};
    for (const block::Tie& tie : model.ties()) {
      if (tie.owner == parameter.name) named.names.push_back(tie.name);
    }
    if (type != nullptr) {
      const std::int64_t size = parameter.tensor.dim() > 0 ? parameter.tensor.size(0) : 1;
      for (const std::string& name : std::vector<std::string>(named.names)) add_names(*type, name, size, named);
    }
    named.parameter = std::move(parameter);
    all.push_back(std::move(named));
  }
  return all;
}

bool is_of_adapter(const Named& named) { return part::is_of_term(named.parameter.name); }

/// The patterns of one key.
class Patterns {
 public:
  /// `key`: the path that messages name.
  Patterns(std::string key, const Node* patterns, const std::vector<Named>& all, Diagnostics& diagnostics)
      : key_(std::move(key)), patterns_(patterns), all_(all), diagnostics_(diagnostics) {}

  bool given() const { return patterns_ != nullptr && !patterns_->is_null() && !patterns_->items().empty(); }
  const Node& node() const { return *patterns_; }

  /// By position, whether they name the parameter.
  std::vector<bool> chosen() {
    std::vector<bool> chosen;
    for (const Named& named : all_) chosen.push_back(names(named));
    for (const Node& pattern : patterns_->items()) check(pattern);
    return chosen;
  }

 private:
  bool matches(const std::vector<std::string>& names) const {
    return std::any_of(patterns_->items().begin(), patterns_->items().end(),
                       [&names](const Node& pattern) { return matches_any(pattern.as_string(), names); });
  }

  bool names(const Named& named) const {
    if (matches(named.names)) return true;
    return !named.parts.empty() &&
           std::all_of(named.parts.begin(), named.parts.end(), [this](const auto& part) { return matches(part); });
  }

  void check(const Node& pattern) {
    const std::string& text = pattern.as_string();
    const std::string told = key_ + " names ";
    bool used = false;
    for (const Named& named : all_) {
      used = used || matches_any(text, named.names);
      const auto part = std::find_if(named.parts.begin(), named.parts.end(),
                                     [&text](const auto& names) { return matches_any(text, names); });
      if (part == named.parts.end()) continue;
      used = true;
      if (names(named)) continue;
      std::vector<std::string> others;
      for (const auto& names : named.parts) {
        if (!matches(names)) others.push_back(names.front());
      }
      diagnostics_.error(
          pattern.location(), told + part->front() + ", which is joined with others in " + named.parameter.name,
          others.size() > kPartsShown
              ? "name " + named.parameter.name
              : "name " + runner::core::joined(others, " and ") + " as well, or " + named.parameter.name);
      return;
    }
    if (!used) diagnostics_.error(pattern.location(), told + "no parameter: \"" + text + "\"", hint(text));
  }

  std::string hint(const std::string& text) const {
    std::vector<std::string> own, names;
    for (const Named& named : all_) {
      own.push_back(named.parameter.name);
      names.insert(names.end(), named.names.begin(), named.names.end());
      for (const auto& part : named.parts) names.insert(names.end(), part.begin(), part.end());
    }
    if (const std::string below = text + ".*"; matches_any(below, names)) return "did you mean \"" + below + "\"?";
    const std::string near = runner::core::closest(text, names);
    if (!near.empty()) return "did you mean \"" + near + "\"? `*` matches any text";
    return "the parameters are called " + runner::core::joined_first(own, kNamesShown) + "; `*` matches any text";
  }

  const std::string key_;
  const Node* patterns_;
  const std::vector<Named>& all_;
  Diagnostics& diagnostics_;
};

}  // namespace

void freeze_parameters(const Model& model, const Node& training, const Node& block, Diagnostics& diagnostics) {
  const std::vector<Named> all = all_names(model, block);
  Patterns freeze("training.freeze", training.find("freeze"), all, diagnostics),
      train_only("training.train_only", training.find("train_only"), all, diagnostics);
  if (!freeze.given() && !train_only.given()) return;
  const int before = diagnostics.error_count();
  std::vector<bool> frozen(all.size(), false);
  const bool adapted = std::any_of(all.begin(), all.end(), is_of_adapter);
  if (adapted) {
    for (std::size_t i = 0; i < all.size(); ++i) frozen[i] = !all[i].parameter.tensor.requires_grad();
  }
  if (train_only.given()) {
    const std::vector<bool> named = train_only.chosen();
    // Beside adapters it names more to train.
    for (std::size_t i = 0; i < all.size(); ++i) frozen[i] = !named[i] && (!adapted || frozen[i]);
  }
  if (freeze.given()) {
    const std::vector<bool> named = freeze.chosen();
    for (std::size_t i = 0; i < all.size(); ++i) frozen[i] = frozen[i] || named[i];
  }
  if (diagnostics.error_count() != before) return;
  if (std::all_of(frozen.begin(), frozen.end(), [](bool is_frozen) { return is_frozen; })) {
    const Node& key = freeze.given() ? freeze.node() : train_only.node();
    diagnostics.error(key.location(), "training.freeze leaves no parameter to train",
                      train_only.given() ? "train_only names only what freeze names, too" : "name fewer of them");
    return;
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i].parameter.tensor.set_requires_grad(!frozen[i]);
}

std::set<std::string> named_parameters(const Model& model, const std::string& key, const Node& patterns,
                                       const Node& block, Diagnostics& diagnostics) {
  std::set<std::string> names;
  const std::vector<Named> all = all_names(model, block);
  Patterns chosen(key, &patterns, all, diagnostics);
  if (!chosen.given()) return names;
  const std::vector<bool> named = chosen.chosen();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (named[i]) names.insert(all[i].parameter.name);
  }
  return names;
}

}  // namespace components::model
