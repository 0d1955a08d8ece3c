#include "runner/pretrained/model_type.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/tables.h"

namespace runner::pretrained {
namespace {

using core::Node;

constexpr std::string_view kNumber = "{i}", kExpert = "{e}";

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

bool is_true(const Node& table, const char* key) {
  const Node* value = table.find(key);
  return value != nullptr && value->as_bool();
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
  field.optional = is_true(entry.value, "optional");
  field.also = texts(entry.value.find("also"));
  return field;
}

void take_fields(const Node& table, ModelType& type) {
  for (const Node::Entry& entry : table.find("fields")->entries()) {
    if (type.field(entry.key) == nullptr) type.fields.push_back(field_of(entry));
  }
}

void take_weights(const Node& table, ModelType& type) {
  for (const Node& rule : table.find("weights")->items()) {
    const auto flag = [&rule](const char* key) {
      const Node* value = rule.find(key);
      return value != nullptr ? std::make_optional(value->as_bool()) : std::nullopt;
    };
    const Node* stacked = rule.find("stacked");
    type.weights.push_back({rule.find("name")->as_string(), texts(rule.find("from")), is_true(rule, "transposed"),
                            is_true(rule, "else_zeros"), flag("gated"), is_true(rule, "else_new"),
                            stacked != nullptr ? stacked->as_string() : "", flag("mixture")});
  }
}

std::vector<UnreadTensor> unread_tensors(const Node* list, const char* name, const char* sizes) {
  std::vector<UnreadTensor> found;
  if (list == nullptr) return found;
  for (const Node& item : list->items()) {
    UnreadTensor one{item.find(name)->as_string(), texts(item.find(sizes))};
    if (const Node* bytes = item.find("bytes")) one.item_bytes = bytes->as_integer();
    found.push_back(std::move(one));
  }
  return found;
}

ModelType read_table(const Node& table, const Node& common) {
  ModelType type;
  type.name = table.find("model_type")->as_string();
  type.prefix = table.find("prefix")->as_string();
  type.not_quantized = texts(table.find("not_quantized"));
  for (const Node::Entry& head : table.find("heads")->entries()) {
    type.heads.push_back({head.key, head.value.find("architecture")->as_string()});
  }
  take_weights(table, type);
  type.roles = *table.find("roles");
  type.adapter_targets = texts(table.find("adapter_targets"));
  type.undivided = texts(table.find("undivided"));
  type.buffers = unread_tensors(table.find("buffers"), "in", "of");
  type.unread = unread_tensors(table.find("unread"), "name", "shape");
  type.ignored = texts(table.find("ignored"));
  const auto take_ends = [&table](const char* key, std::vector<std::pair<std::string, std::string>>& all) {
    const Node* ends = table.find(key);
    if (ends == nullptr) return;
    for (const Node::Entry& end : ends->entries()) all.emplace_back(end.key, end.value.as_string());
  };
  take_ends("old_ends", type.old_ends);
  take_ends("memory_ends", type.memory_ends);
  type.metadata = texts(common.find("metadata"));
  take_fields(table, type);  // what a type says itself goes before
  take_fields(common, type);
  return type;
}

/// With one of its heads.
ModelType with_head(ModelType type, const Node& table, const Node::Entry& head) {
  type.head = head.key;
  type.architecture = head.value.find("architecture")->as_string();
  if (const Node* roles = head.value.find("roles")) type.roles.set("output", *roles);
  take_weights(head.value, type);
  if (type.is_language_model()) return type;
  if (type.head == kEmbedding) {  // the base model itself
    for (WeightRule& rule : type.weights) {
      for (std::string& from : rule.from) {
        if (from.starts_with(type.prefix)) from.erase(0, type.prefix.size());
      }
      if (rule.stacked.starts_with(type.prefix)) rule.stacked.erase(0, type.prefix.size());
    }
    for (std::string& module : type.undivided) {
      if (module.starts_with(type.prefix)) module.erase(0, type.prefix.size());
    }
    for (UnreadTensor& buffer : type.buffers) {
      if (buffer.name.starts_with(type.prefix)) buffer.name.erase(0, type.prefix.size());
    }
  }
  // What the model was trained with before: its head is not the one that is trained now.
  for (const Node::Entry& other : table.find("heads")->entries()) {
    for (const Node& rule : other.value.find("weights")->items()) {
      for (const std::string& from : texts(rule.find("from"))) {
        const bool own = std::any_of(type.weights.begin(), type.weights.end(), [&from](const WeightRule& one) {
          return std::find(one.from.begin(), one.from.end(), from) != one.from.end();
        });
        if (!own) type.ignored.push_back(from);
      }
    }
  }
  return type;
}

/// By model_type, and then by head; "": without one. `refused`: what is said of types that roux knows by name alone.
struct Types {
  std::map<std::string, std::map<std::string, ModelType, std::less<>>, std::less<>> known;
  std::map<std::string, std::string, std::less<>> refused;
};

const Types& all_types() {
  static const auto* const all = [] {
    std::vector<Node> tables;
    for (const std::string_view json : std::span(kTables, kTableCount)) {
      core::Result<Node> table = core::parse_json(json);
      RUNNER_ASSERT(table, "components/model/types holds JSON");
      tables.push_back(std::move(table).value());
    }
    const auto is_type = [](const Node& table) { return table.find("model_type") != nullptr; };
    const Node& common = *std::find_if_not(tables.begin(), tables.end(), is_type);
    auto* const found = new Types;
    for (const Node& table : tables) {
      if (!is_type(table)) continue;
      ModelType type = read_table(table, common);
      auto& of_type = found->known[type.name];
      for (const Node::Entry& head : table.find("heads")->entries()) {
        of_type.emplace(head.key, with_head(type, table, head));
      }
      of_type.emplace("", std::move(type));
    }
    for (const Node::Entry& entry : common.find("refused")->entries()) {
      found->refused.emplace(entry.key, entry.value.as_string());
    }
    return found;
  }();
  return *all;
}

const auto& types() { return all_types().known; }

}  // namespace

const Field* ModelType::field(std::string_view wanted) const {
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == wanted; });
  return at != fields.end() ? &*at : nullptr;
}

const Field* ModelType::field_also_called(std::string_view wanted) const {
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& f) {
    return std::find(f.also.begin(), f.also.end(), wanted) != f.also.end();
  });
  return at != fields.end() ? &*at : nullptr;
}

std::vector<std::string> WeightRule::parts(std::int64_t number, std::int64_t experts) const {
  std::vector<std::string> names;
  for (std::int64_t e = 0; e < (is_of_experts() ? experts : 1); ++e) {
    for (const std::string& pattern : from) {
      std::string name = with_number(pattern, number);
      if (const std::size_t at = name.find(kExpert); at != std::string::npos) {
        name.replace(at, kExpert.size(), std::to_string(e));
      }
      names.push_back(std::move(name));
    }
  }
  return names;
}

const WeightRule* ModelType::rule_of(std::string_view tensor) const {
  const auto at = std::find_if(weights.begin(), weights.end(),
                               [&](const WeightRule& rule) { return number_in(rule.name, tensor).has_value(); });
  return at != weights.end() ? &*at : nullptr;
}

bool ModelType::has_head(std::string_view wanted) const {
  return std::any_of(heads.begin(), heads.end(), [&](const HeadName& one) { return one.name == wanted; });
}

std::string ModelType::head_of_class(std::string_view architecture_name) const {
  const auto at = std::find_if(heads.begin(), heads.end(), [&](const HeadName& one) {
    return one.architecture == architecture_name && one.name != kEmbedding;
  });
  return at != heads.end() ? at->name : "";
}

std::string ModelType::memory_name(const std::string& name) const {
  for (const auto& [of_file, of_memory] : memory_ends) {
    if (name.ends_with(of_file)) return name.substr(0, name.size() - of_file.size()) + of_memory;
  }
  return name;
}

std::string ModelType::own_name(std::string_view name) const {
  const auto is_weight = [this](const std::string& one) {
    return std::any_of(weights.begin(), weights.end(), [&one](const WeightRule& rule) {
      return std::any_of(rule.from.begin(), rule.from.end(),
                         [&one](const std::string& from) { return number_in(from, one).has_value(); });
    });
  };
  std::string own(name);
  if (is_weight(own)) return own;
  if (is_weight(prefix + own)) return prefix + own;
  if (own.starts_with(prefix) && is_weight(own.substr(prefix.size()))) return own.substr(prefix.size());
  return own;
}

const ModelType* find_model_type(std::string_view name, std::string_view head) {
  const auto type = types().find(name);
  if (type == types().end()) return nullptr;
  const auto& of_type = type->second;
  const auto usual = of_type.find(kCausalLm);
  const auto at = head.empty() && usual != of_type.end() ? usual : of_type.find(head);
  return at != of_type.end() ? &at->second : nullptr;
}

namespace {

std::string text(const Node* node) { return node != nullptr && node->is_string() ? node->as_string() : ""; }

/// The head that the configuration's class has; "" where it names none with a head that roux knows.
std::string head_of_config(const ModelType& type, const Node& config) {
  const Node* classes = config.find("architectures");
  if (classes == nullptr || !classes->is_sequence()) return "";
  for (const Node& one : classes->items()) {
    if (const std::string head = type.head_of_class(text(&one)); !head.empty()) return head;
  }
  return "";
}

}  // namespace

const ModelType& model_type_of_config(const Node& config) {
  const std::string name = text(config.find("model_type"));
  return *find_model_type(name, head_of_config(*find_model_type(name), config));
}

const ModelType* model_type_of(const Node& model) {
  const std::string type = text(model.find("type"));
  if (type != "transformers") return find_model_type(type == "gpt" ? "gpt2" : type);
  const ModelType* usual = find_model_type(text(model.at_path("config.model_type")));
  if (usual == nullptr) return nullptr;
  const std::string written = text(model.find("head"));
  return find_model_type(usual->name, written.empty() ? head_of_config(*usual, *model.find("config")) : written);
}

std::string why_refused(std::string_view name) {
  const auto at = all_types().refused.find(name);
  return at != all_types().refused.end() ? at->second : "";
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

namespace {

/// The number that a text is; `00` would be another name for block 0.
std::optional<std::int64_t> plain_number(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool plain = digits == "0" || (!digits.empty() && digits.front() >= '1' && digits.front() <= '9');
  if (failed != std::errc() || end != digits.data() + digits.size() || !plain) return std::nullopt;
  return number;
}

struct Numbers {
  std::int64_t block = -1, expert = -1;
};

/// Those that the placeholders of a pattern stand for in a name.
std::optional<Numbers> numbers_in(std::string_view pattern, std::string_view name) {
  Numbers found;
  while (true) {
    const std::size_t at = std::min(pattern.find(kNumber), pattern.find(kExpert));
    if (at == std::string_view::npos) return pattern == name ? std::make_optional(found) : std::nullopt;
    if (!name.starts_with(pattern.substr(0, at))) return std::nullopt;
    name.remove_prefix(at);
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    const std::optional<std::int64_t> number = plain_number(name.substr(0, digits));
    if (!number) return std::nullopt;
    (pattern.substr(at).starts_with(kNumber) ? found.block : found.expert) = *number;
    name.remove_prefix(digits);
    pattern.remove_prefix(at + kNumber.size());  // both are as long
  }
}

}  // namespace

std::optional<std::int64_t> number_in(std::string_view pattern, std::string_view name) {
  const std::optional<Numbers> found = numbers_in(pattern, name);
  return found ? std::make_optional(found->block) : std::nullopt;
}

std::optional<std::int64_t> expert_in(std::string_view pattern, std::string_view name) {
  if (pattern.find(kExpert) == std::string_view::npos) return std::nullopt;
  const std::optional<Numbers> found = numbers_in(pattern, name);
  return found ? std::make_optional(found->expert) : std::nullopt;
}

core::Result<void> check_head(const Node& config, const std::string& head) {
  const ModelType& type = model_type_of_config(config);
  if (head.empty() ? !type.head.empty() : type.has_head(head)) return {};
  std::vector<std::string> heads;
  for (const HeadName& one : type.heads) heads.push_back(one.name);
  if (head.empty()) {
    return core::Failure{"the configuration of this " + type.name + " names no class with a head",
                         "set model.head to one of " + core::joined(heads), core::kExitUsage};
  }
  return core::Failure{"head is " + head + ", which " + type.name + " does not have in Transformers",
                       "it has " + core::joined(heads), core::kExitUsage};
}

}  // namespace runner::pretrained
