#include "runner/registry/reference/lookup.h"

#include <algorithm>
#include <memory>

#include "runner/registry/value_check.h"
#include "runner/registry/wording.h"

namespace runner::registry {
namespace {

using core::Node;
using Type = Property::Type;

const Property* find_among(const std::vector<Property>& properties, const std::string& key) {
  for (const Property& property : properties) {
    if (property.name == key) return &property;
  }
  return nullptr;
}

const Fragment* fragment_at(const Registry& registry, const Property& property, const Node* node) {
  if (property.type == Type::kSection) return registry.find("section", property.name);
  if (property.type != Type::kComponent || node == nullptr) return nullptr;
  const Node* type = node->find("type");
  return type != nullptr && type->is_string() ? registry.find(property.kind, type->as_string()) : nullptr;
}

const Property* key_of(const Registry& registry, const PathSchema& at, const std::string& key) {
  if (at.property != nullptr && at.property->type == Type::kMap) return at.property->element.get();
  if (at.property != nullptr && at.property->type == Type::kObject) return find_among(at.property->properties, key);
  if (at.fragment == nullptr) return nullptr;
  if (const Property* own = at.fragment->find(key)) return own;
  const Fragment* common = registry.common(at.fragment->kind);
  return common != nullptr ? common->find(key) : nullptr;
}

/// `integers, each at least 1 (samples)`, `metrics`: what the items of a list or the values of a mapping are.
std::string items_text(const Property& item) {
  const std::string one = type_text(item);
  switch (item.type) {
    case Type::kInteger:
    case Type::kNumber:
    case Type::kDuration: {
      if (item.or_auto) return one;
      const std::size_t end = std::min(one.find_first_of(", "), one.size());
      const bool bounded = one.find(", ", end) == end;
      return one.substr(0, end) + "s" + (bounded ? ", each" + one.substr(end + 1) : one.substr(end));
    }
    case Type::kArray: return "lists" + one.substr(std::string("list").size());
    case Type::kString: return item.enum_values.empty() ? "texts" : one;
    case Type::kObject:
    case Type::kInterval:
    case Type::kPath: return one + "s";
    case Type::kComponent: return one + (one.ends_with('s') ? "es" : "s");
    default: return one;
  }
}

}  // namespace

std::vector<std::string> path_parts(std::string_view path) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : path) {
    if (c == '.' || c == '[') {
      if (!part.empty()) parts.push_back(part);
      part = c == '[' ? "[" : "";
    } else {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

PathSchema find_schema(const Registry& registry, const Node& root, std::string_view path) {
  PathSchema at{nullptr, registry.find("section", "recipe")};
  const Node* node = &root;
  for (const std::string& part : path_parts(path)) {
    const bool item = part[0] == '[';
    if (item) {
      at.property = at.property != nullptr && at.property->type == Type::kArray ? at.property->element.get() : nullptr;
    } else {
      at.property = key_of(registry, at, part);
    }
    if (at.property == nullptr) return {};
    node = node == nullptr ? nullptr : node->at_path(part);
    at.fragment = fragment_at(registry, *at.property, node);
  }
  return at;
}

std::string type_text(const Property& property) {
  std::string text;
  switch (property.type) {
    case Type::kBoolean: text = property.count_key.empty() ? "true or false" : "true, false or a number"; break;
    case Type::kInteger: text = property.or_auto ? "auto or integer" : "integer"; break;
    case Type::kNumber: text = "number"; break;
    case Type::kString:
      text = property.enum_values.empty() ? "text" : enumerated(property.enum_values, "or", 16);
      break;
    case Type::kArray: text = "list of " + items_text(*property.element); break;
    case Type::kMap: text = "mapping of names to " + items_text(*property.element); break;
    case Type::kObject: text = property.short_form.empty() ? "mapping" : property.short_form + " or mapping"; break;
    case Type::kSection: text = "section"; break;
    case Type::kComponent: text = kind_word(property.kind); break;
    case Type::kInterval: text = "interval"; break;
    case Type::kDuration: text = "duration"; break;
    case Type::kBytes: text = "size in bytes"; break;
    case Type::kPath: text = "path"; break;
    case Type::kSecret: text = "secret, as ${env:NAME} or {file: PATH}"; break;
    case Type::kAny: text = "any value"; break;
  }
  const std::string bounds = bounds_text(property);
  if (!bounds.empty()) text += ", " + bounds;
  if (!property.unit.empty()) text += " (" + property.unit + ")";
  return text;
}

std::string default_text(const Property& property) {
  if (property.required) return "required";
  if (!property.default_from.empty()) return "computed from " + property.default_from;
  if (!property.default_value || property.default_value->is_null()) return "optional";
  const Node& value = *property.default_value;
  if (value.is_sequence() || value.is_mapping()) return "default " + core::to_json(value, -1);
  return "default " +
         (value.is_string() && property.enum_values.empty() ? quoted(value.as_string()) : value.scalar_text());
}

}  // namespace runner::registry
