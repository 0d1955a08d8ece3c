#include "runner/pretrained/model_type.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/pretrained/tables.h"

namespace runner::pretrained {
namespace {

using core::Node;

constexpr std::string_view kNumber = "{i}";

std::vector<std::string> texts(const Node* list) {
  std::vector<std::string> found;
  if (list == nullptr) return found;
  if (list->is_string()) return {list->as_string()};
  for (const Node& item : list->items()) found.push_back(item.as_string());
  return found;
}

std::optional<double> number(const Node& field, const char* key) {
  const Node* value = field.find(key);
  return value != nullptr ? std::make_optional(value->as_double()) : std::nullopt;
}

Field field_of(const Node::Entry& entry) {
  Field field;
  field.name = entry.key;
  const std::string& use = entry.value.find("use")->as_string();
  field.use = use == "read" ? Field::Use::kRead : use == "only" ? Field::Use::kOnly : Field::Use::kNone;
  field.types = texts(entry.value.find("type"));
  field.minimum = number(entry.value, "minimum");
  field.maximum = number(entry.value, "maximum");
  field.exclusive_minimum = number(entry.value, "exclusiveMinimum");
  field.exclusive_maximum = number(entry.value, "exclusiveMaximum");
  const Node* value = entry.value.find(field.use == Field::Use::kOnly ? "value" : "default");
  if (value != nullptr) field.value = *value;
  return field;
}

void take_fields(const Node& table, ModelType& type) {
  for (const Node::Entry& entry : table.find("fields")->entries()) {
    if (type.field(entry.key) == nullptr) type.fields.push_back(field_of(entry));
  }
}

ModelType read_table(const Node& table, const Node& common) {
  ModelType type;
  type.name = table.find("model_type")->as_string();
  type.architecture = table.find("architecture")->as_string();
  type.prefix = table.find("prefix")->as_string();
  for (const Node& rule : table.find("weights")->items()) {
    const auto is_true = [&rule](const char* key) {
      const Node* value = rule.find(key);
      return value != nullptr && value->as_bool();
    };
    type.weights.push_back(
        {rule.find("name")->as_string(), texts(rule.find("from")), is_true("transposed"), is_true("else_zeros")});
  }
  type.decoder = *table.find("decoder");
  type.adapter_targets = texts(table.find("adapter_targets"));
  type.ignored = texts(table.find("ignored"));
  type.metadata = texts(common.find("metadata"));
  take_fields(table, type);  // what a type says itself goes before
  take_fields(common, type);
  return type;
}

const std::map<std::string, ModelType, std::less<>>& types() {
  static const auto* const all = [] {
    std::vector<Node> tables;
    for (const std::string_view json : std::span(kTables, kTableCount)) {
      core::Result<Node> table = core::parse_json(json);
      RUNNER_ASSERT(table, "components/model/types holds JSON");
      tables.push_back(std::move(table).value());
    }
    const auto is_type = [](const Node& table) { return table.find("model_type") != nullptr; };
    const Node& common = *std::find_if_not(tables.begin(), tables.end(), is_type);
    auto* const found = new std::map<std::string, ModelType, std::less<>>;
    for (const Node& table : tables) {
      if (!is_type(table)) continue;
      ModelType type = read_table(table, common);
      std::string name = type.name;
      found->emplace(std::move(name), std::move(type));
    }
    return found;
  }();
  return *all;
}

}  // namespace

const Field* ModelType::field(std::string_view wanted) const {
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == wanted; });
  return at != fields.end() ? &*at : nullptr;
}

const ModelType* find_model_type(std::string_view name) {
  const auto at = types().find(name);
  return at != types().end() ? &at->second : nullptr;
}

const ModelType* model_type_of(const Node& model) {
  const auto text = [](const Node* node) { return node != nullptr && node->is_string() ? node->as_string() : ""; };
  const std::string type = text(model.find("type"));
  if (type == "transformers") return find_model_type(text(model.at_path("config.model_type")));
  return find_model_type(type == "gpt" ? "gpt2" : type);
}

std::vector<std::string> model_types() {
  std::vector<std::string> names;
  for (const auto& [name, type] : types()) names.push_back(name);
  return names;
}

std::string with_number(const std::string& pattern, std::int64_t number) {
  const std::size_t at = pattern.find(kNumber);
  if (at == std::string::npos) return pattern;
  return pattern.substr(0, at) + std::to_string(number) + pattern.substr(at + kNumber.size());
}

std::optional<std::int64_t> number_in(std::string_view pattern, std::string_view name) {
  const std::size_t at = pattern.find(kNumber);
  if (at == std::string_view::npos) return pattern == name ? std::make_optional<std::int64_t>(-1) : std::nullopt;
  const std::string_view after = pattern.substr(at + kNumber.size());
  if (name.size() <= at + after.size() || !name.starts_with(pattern.substr(0, at)) || !name.ends_with(after)) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(at, name.size() - at - after.size());
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  // `00` would be another name for block 0.
  const bool plain = digits == "0" || (digits.front() >= '1' && digits.front() <= '9');
  if (failed != std::errc() || end != digits.data() + digits.size() || !plain) return std::nullopt;
  return number;
}

}  // namespace runner::pretrained
