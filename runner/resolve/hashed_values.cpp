#include "runner/resolve/hashed_values.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace runner::resolve {
namespace {

using core::Node;
using registry::Fragment;
using registry::Property;
using registry::Registry;
using Type = Property::Type;

/// A number as 1 and as 1.0 is the same: a default stands as its fragment has it.
bool is_same(const Node& a, const Node& b) {
  if (a.is_number() && b.is_number()) return a.as_double() == b.as_double();
  if (a.is_sequence() && b.is_sequence())
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), is_same);
  if (a.is_mapping() && b.is_mapping()) {
    return a.entries().size() == b.entries().size() &&
           std::all_of(a.entries().begin(), a.entries().end(), [&b](const Node::Entry& entry) {
             const Node* other = b.find(entry.key);
             return other != nullptr && is_same(entry.value, *other);
           });
  }
  return a.same_value(b);
}

class Walk {
 public:
  explicit Walk(const Registry& registry) : registry_(registry) {}

  Node value(const Node& given, const Property& property) const {
    switch (property.type) {
      case Type::kArray: {
        Node kept = given;
        for (Node& item : kept.items()) item = value(item, *property.element);
        return kept;
      }
      case Type::kMap: {
        Node kept = given;
        for (Node::Entry& entry : kept.entries()) entry.value = value(entry.value, *property.element);
        return kept;
      }
      case Type::kObject: return block(given, {&property.properties});
      case Type::kSection: return block(given, keys_of(registry_.find("section", property.name)));
      case Type::kComponent: {
        const Node* type = given.find("type");
        if (type == nullptr || !type->is_string()) return given;
        Keys keys = keys_of(registry_.find(property.kind, type->as_string()));
        if (const Fragment* common = registry_.common(property.kind)) keys.push_back(&common->properties);
        return block(given, keys);
      }
      default: return given;
    }
  }

  Node recipe(const Node& given) const { return block(given, keys_of(registry_.find("section", "recipe"))); }

 private:
  using Keys = std::vector<const std::vector<Property>*>;

  static Keys keys_of(const Fragment* fragment) { return fragment != nullptr ? Keys{&fragment->properties} : Keys{}; }

  static const Property* find(const Keys& keys, const std::string& name) {
    for (const std::vector<Property>* properties : keys) {
      for (const Property& property : *properties) {
        if (property.name == name) return &property;
      }
    }
    return nullptr;
  }

  Node block(const Node& given, const Keys& keys) const {
    Node kept = given;
    kept.entries().clear();
    for (const Node::Entry& entry : given.entries()) {
      const Property* key = find(keys, entry.key);
      if (key != nullptr && !key->hashed) continue;
      const bool is_former = key != nullptr && key->hash_unset && entry.value.is_null();
      Node counted = is_former ? *key->hash_unset : key != nullptr ? value(entry.value, *key) : entry.value;
      if (key != nullptr && key->first_default && is_same(counted, value(*key->first_default, *key))) continue;
      kept.entries().push_back({entry.key, entry.key_location, std::move(counted)});
    }
    return kept;
  }

  const Registry& registry_;
};

}  // namespace

Node hashed_values(const Node& recipe, const Registry& registry) { return Walk(registry).recipe(recipe); }

}  // namespace runner::resolve
