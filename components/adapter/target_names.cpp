#include "components/adapter/target_names.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "runner/core/language/pattern.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/model_type.h"

namespace components::adapter {
namespace {

using runner::core::Diagnostics;
using runner::core::Node;
using runner::pretrained::ModelType;
using runner::pretrained::WeightRule;

constexpr std::string_view kWeight = ".weight";
constexpr std::size_t kNamesShown = 8;

std::string last_part(const std::string& name) { return name.substr(name.find_last_of('.') + 1); }

/// Transformers' names of what is joined in the layer; empty for a model that it does not have.
std::vector<std::string> modules_of(const ModelType* type, const std::string& layer) {
  std::vector<std::string> modules;
  if (type == nullptr) return modules;
  for (const WeightRule& rule : type->weights) {
    const std::optional<std::int64_t> number = runner::pretrained::number_in(rule.name, layer + std::string(kWeight));
    if (!number) continue;
    for (const std::string& from : rule.from) {
      const std::string weight = runner::pretrained::with_number(from, *number);
      modules.push_back(weight.substr(0, weight.size() - kWeight.size()));
    }
  }
  return modules;
}

void add_targets(const ModelType* type, const part::NamedLinear& linear, std::int64_t block,
                 std::vector<Target>& targets) {
  const std::vector<std::string> modules = modules_of(type, linear.name);
  std::int64_t first = 0;
  if (modules.size() > 1 && modules.size() == linear.parts.size()) {
    for (std::size_t i = 0; i < modules.size(); ++i) {
      targets.push_back({linear.name + "." + last_part(modules[i]), modules[i], linear, block, first, linear.parts[i]});
      first += linear.parts[i];
    }
    return;
  }
  for (const std::int64_t part : linear.parts) first += part;
  targets.push_back({linear.name, modules.empty() ? "" : modules.front(), linear, block, 0, first});
}

bool ends_with_name(const std::string& name, const std::string& text) {
  return name == text || name.ends_with("." + text);
}

}  // namespace

std::vector<Target> all_targets(const model::Model& model, const Node& model_block) {
  const ModelType* type = runner::pretrained::model_type_of(model_block);
  std::vector<Target> targets;
  std::int64_t number = 0;
  std::string stack;
  for (const auto& block : model.blocks()) {
    const std::vector<part::NamedLinear> linears = block->linears();
    if (linears.empty()) continue;
    // An encoder and a decoder count their blocks each.
    const std::string name = block->name().substr(0, block->name().rfind('.'));
    if (std::exchange(stack, name) != name) number = 0;
    for (const part::NamedLinear& linear : linears) add_targets(type, linear, number, targets);
    ++number;
  }
  return targets;
}

TargetNames::TargetNames(const char* key, const Node& value, const std::vector<Target>& all, Diagnostics& diagnostics)
    : key_(key), value_(value), all_(all), diagnostics_(diagnostics) {}

std::vector<bool> TargetNames::chosen() const {
  if (value_.is_string()) return by_expression();
  std::vector<bool> chosen(all_.size(), false);
  for (const Node& name : value_.items()) {
    bool used = false;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!by_name(name.as_string(), all_[i])) continue;
      chosen[i] = used = true;
    }
    if (!used) tell_unused(name);
  }
  return chosen;
}

bool TargetNames::by_name(const std::string& text, const Target& target) const {
  return ends_with_name(target.name, text) || ends_with_name(target.owner.name, text) ||
         ends_with_name(target.module, text);
}

std::vector<bool> TargetNames::by_expression() const {
  std::vector<bool> chosen(all_.size(), false);
  const std::string& text = value_.as_string();
  const auto pattern = runner::core::Pattern::make(text, runner::core::Pattern::Syntax::kPython);
  if (!pattern) {
    diagnostics_.error(value_.location(),
                       std::string(key_) + " is a string, so it is a regular expression: " + pattern.failure().message,
                       pattern.failure().hint);
    return chosen;
  }
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Target& target = all_[i];
    chosen[i] = pattern.value().is_whole(target.name) || pattern.value().is_whole(target.owner.name) ||
                pattern.value().is_whole(target.module);
  }
  if (std::find(chosen.begin(), chosen.end(), true) != chosen.end()) return chosen;
  const bool is_name = std::any_of(all_.begin(), all_.end(), [&](const Target& t) { return by_name(text, t); });
  diagnostics_.error(value_.location(),
                     std::string(key_) + " is a regular expression that matches no layer: \"" + text + "\"",
                     is_name ? "write [" + text + "] to name layers by the last parts of their names" : hint(text));
  return chosen;
}

void TargetNames::tell_unused(const Node& name) const {
  diagnostics_.error(name.location(), std::string(key_) + " names no layer: \"" + name.as_string() + "\"",
                     hint(name.as_string()));
}

std::string TargetNames::hint(const std::string& text) const {
  if (value_.is_sequence() && text.find_first_of("*+?[](){}|\\^$") != std::string::npos) {
    return "a list holds names; an expression is one text: " + std::string(key_) + ": '" + text + "'";
  }
  std::vector<std::string> names, whole;
  const auto add = [&names](const std::string& name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Target& target : all_) add(last_part(target.module.empty() ? target.name : target.module));
  const std::size_t shown = names.size();
  for (const Target& target : all_) {
    add(last_part(target.owner.name));
    for (const std::string* name : {&target.name, &target.owner.name, &target.module}) whole.push_back(*name);
  }
  std::string near = runner::core::closest(text, names);
  if (near.empty()) near = runner::core::closest(text, whole);
  if (!near.empty()) return "did you mean \"" + near + "\"?";
  names.resize(shown);
  const bool has_experts = std::any_of(
      all_.begin(), all_.end(), [](const Target& target) { return last_part(target.owner.name) == "mlp_router"; });
  return "the model's layers are called " + runner::core::joined_first(names, kNamesShown) +
         (has_experts ? "; embedding, head and experts are not adapted" : "; embedding and head are not adapted");
}

}  // namespace components::adapter
