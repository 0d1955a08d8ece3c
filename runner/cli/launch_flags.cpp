#include "runner/cli/launch_flags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "runner/cli/flags.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/launch/rank_environment.h"
#include "runner/registry/registry.h"

namespace runner::cli {
namespace {

using registry::Property;

constexpr const char* kGroup = "Launch";

const registry::Fragment& schema() {
  const registry::Fragment* fragment = registry::Registry::builtin().find("section", "launch");
  RUNNER_ASSERT(fragment != nullptr, "schemas/section/launch.json is built in");
  return *fragment;
}

/// The first sentence, as a line of help.
std::string help_of(const Property& property) {
  std::string text = property.description.substr(0, property.description.find(". "));
  if (text.ends_with('.')) text.pop_back();
  std::erase(text, '`');
  return text;
}

/// A list is written with commas.
recipe::Override change_of(const Property& property, const std::string& value, const std::string& shown_as) {
  const bool list = property.type == Property::Type::kArray && !value.starts_with('[');
  return {recipe::Override::Kind::kSet, "launch." + property.name + "=" + (list ? "[" + value + "]" : value), shown_as};
}

/// What help calls the value of a flag.
std::string metavar(const Property& property) {
  if (property.name.ends_with("_port")) return "PORT";
  if (property.name.ends_with("_ip")) return "HOST";
  if (property.name == "hosts") return "HOST,...";
  switch (property.type) {
    case Property::Type::kBoolean: return "";
    case Property::Type::kInteger: return "N";
    case Property::Type::kArray: return "N,...";
    case Property::Type::kDuration: return "DURATION";
    case Property::Type::kPath: return "DIR";
    default: return property.enum_values.empty() ? "NAME" : "WORD";
  }
}

/// What happens to a run that fails, or ends before it is complete.
bool is_of_training(const std::string& key) {
  constexpr auto kKeys =
      std::to_array<std::string_view>({"max_restarts", "min_machines", "join_timeout", "time_limit", "save_margin"});
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

void add_flags(Command command, RecipeFlags& flags, const std::function<bool(const std::string& key)>& leave_out) {
  for (const Property& property : schema().properties) {
    if (leave_out(property.name)) continue;
    std::string dashed = property.name;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    const std::string names = "--" + dashed + (dashed == property.name ? "" : ",--" + property.name);
    std::string& target = flags.launch[property.name];
    Option option = command.add_option(names, target, help_of(property)).group(kGroup);
    if (property.type == Property::Type::kBoolean) option.expected(0, 1);
    option.type_name(metavar(property));
    if (!property.enum_values.empty()) offer(option, property.enum_values);
    option.take_last();
  }
}

}  // namespace

void add_launch_flags(Command command, RecipeFlags& flags) {
  add_flags(command, flags, [](const std::string&) { return false; });
}

void add_work_launch_flags(Command command, RecipeFlags& flags) { add_flags(command, flags, is_of_training); }

std::optional<recipe::Override> launch_change(const Option& option) {
  if (option.group_name() != kGroup) return std::nullopt;
  const std::string name = option.long_names().back();  // the key itself, or the only name
  const Property* property = schema().find(name);
  RUNNER_ASSERT(property != nullptr, "add_launch_flags made it from the schema");
  const std::vector<std::string> values = option.values();
  const bool named_alone = property->type == Property::Type::kBoolean && (values.empty() || values.back().empty());
  const std::string value = named_alone ? "true" : values.back();
  return change_of(*property, value, "--" + option.long_names().front() + " " + value);
}

std::string launch_variable(const std::string& key) { return core::upper("ROUX_LAUNCH_" + key); }

std::vector<recipe::Override> launch_variables() {
  std::vector<recipe::Override> changes;
  for (const Property& property : schema().properties) {
    const std::string name = launch_variable(property.name);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    changes.push_back(change_of(property, value, name + "=" + value));
  }
  return changes;
}

std::optional<recipe::Override> launcher_size() {
  const auto size = launch::size_in_environment();
  if (!size) return std::nullopt;
  return recipe::Override{recipe::Override::Kind::kDefault, "launch.num_processes=" + size->second,
                          size->first + "=" + size->second};
}

}  // namespace runner::cli
