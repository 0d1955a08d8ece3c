#include "runner/cli/explain/component_page.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runner/cli/explain/page.h"
#include "runner/cli/session.h"
#include "runner/registry/reference/lookup.h"
#include "runner/registry/wording.h"

namespace runner::cli {
namespace {

using core::Node;
using registry::Fragment;
using registry::Property;

void print_property(const Property& property) {
  std::printf("  %s: %s; %s\n", property.name.c_str(), registry::type_text(property).c_str(),
              registry::default_text(property).c_str());
  print_wrapped(property.description, 6);
  const Property* inner = &property;
  while (inner->type == Property::Type::kArray && inner->element) inner = inner->element.get();
  if (inner->type != Property::Type::kObject) return;
  for (const Property& key : inner->properties) {
    std::printf("      %s: %s; %s\n", key.name.c_str(), registry::type_text(key).c_str(),
                registry::default_text(key).c_str());
    print_wrapped(key.description, 10);
  }
}

Node list_json(const std::vector<Property>& properties);

Node property_json(const Property& property) {
  Node node = Node::mapping();
  node.set("key", Node::string(property.name));
  node.set("type", Node::string(registry::type_text(property)));
  node.set("required", Node::boolean(property.required));
  node.set("default", property.default_value.value_or(Node::null()));
  if (!property.default_from.empty()) node.set("computed_from", Node::string(property.default_from));
  node.set("description", Node::string(property.description));
  const Property* inner = &property;
  while (inner->type == Property::Type::kArray && inner->element) inner = inner->element.get();
  if (inner->type == Property::Type::kObject) node.set("keys", list_json(inner->properties));
  return node;
}

Node list_json(const std::vector<Property>& properties) {
  Node rows = Node::sequence();
  for (const Property& property : properties) rows.items().push_back(property_json(property));
  return rows;
}

Node fragment_json(const registry::Registry& registry, const Fragment& fragment) {
  Node node = Node::mapping();
  node.set("kind", Node::string(fragment.kind));
  node.set("name", Node::string(fragment.name));
  node.set("title", Node::string(fragment.title));
  node.set("description", Node::string(fragment.description));
  node.set("source", Node::string(fragment.source));
  if (!fragment.holds.empty()) {
    Node records = Node::sequence();
    for (const std::string& word : fragment.holds) records.items().push_back(Node::string(word));
    node.set("records", std::move(records));
  }
  node.set("keys", list_json(fragment.properties));
  const Fragment* common = fragment.kind == "section" ? nullptr : registry.common(fragment.kind);
  if (common != nullptr) node.set("keys_of_kind", list_json(common->properties));
  node.set("examples", Node::sequence(fragment.examples));
  return node;
}

void print_fragment(const registry::Registry& registry, const Fragment& fragment) {
  std::printf("%s/%s: %s\n", fragment.kind.c_str(), fragment.name.c_str(), fragment.title.c_str());
  print_wrapped(fragment.description, 0);
  if (!fragment.source.empty()) print_wrapped("Source: " + fragment.source, 0);
  if (!fragment.holds.empty()) print_wrapped("Records " + registry::kept_text(fragment), 0);
  if (!fragment.resync.empty()) {
    print_wrapped("`trackers: all` " + registry::taken_text(fragment), 0);
    print_wrapped("`roux sync --resync`: " + fragment.resync, 0);
  }
  if (!fragment.properties.empty()) std::printf("\n");
  for (const Property& property : fragment.properties) print_property(property);
  const Fragment* common = fragment.kind == "section" ? nullptr : registry.common(fragment.kind);
  if (common != nullptr && !common->properties.empty()) {
    std::printf("\n%s:\n", common->title.c_str());
    for (const Property& property : common->properties) print_property(property);
  }
  if (!fragment.examples.empty()) std::printf("\n%s:\n", fragment.examples.size() == 1 ? "Example" : "Examples");
  for (const Node& example : fragment.examples) std::printf("  %s\n", flow_text(example).c_str());
}

/// The key at `path` of a section: `checkpoint.mode`, `sweep.metric.goal`. Null when there is none.
const Property* find_key(const registry::Registry& registry, const std::string& path) {
  const std::vector<std::string> parts = registry::path_parts(path);
  if (parts.size() < 2) return nullptr;
  const Fragment* section = registry.find("section", parts[0]);
  const Property* key = section == nullptr ? nullptr : section->find(parts[1]);
  for (std::size_t i = 2; i < parts.size() && key != nullptr; ++i) {
    while (key->element != nullptr) key = key->element.get();
    const auto& inner = key->properties;
    const auto found = std::find_if(inner.begin(), inner.end(), [&](const Property& p) { return p.name == parts[i]; });
    key = found == inner.end() ? nullptr : &*found;
  }
  return key;
}

}  // namespace

bool explain_component(const std::string& word, bool json, Session& session) {
  const registry::Registry& registry = registry::Registry::builtin();
  const std::size_t slash = word.find('/');
  const std::string kind = slash == std::string::npos ? "section" : word.substr(0, slash);
  const std::string name = slash == std::string::npos ? word : word.substr(slash + 1);
  if (const Property* key = find_key(registry, word)) {
    Property shown = *key;
    shown.name = word;
    json ? print_json(property_json(shown)) : print_property(shown);
    return true;
  }
  if (const Fragment* fragment = registry.find(kind, name)) {
    json ? print_json(fragment_json(registry, *fragment)) : print_fragment(registry, *fragment);
    return true;
  }
  if (slash == std::string::npos && registry.find_kind(word) != nullptr) {
    session.fail("\"" + word + "\" is a kind, not a component",
                 "choose one of `roux list " + word + "`, then `roux explain " + word + "/NAME`");
    return true;
  }
  if (slash != std::string::npos && (kind == "section" || registry.find_kind(kind) != nullptr)) {
    const std::string near = registry.suggest(kind, name);
    session.fail("no " + kind + " is called \"" + name + "\"",
                 near.empty() ? "`roux list " + kind + "` shows all " + std::to_string(registry.names(kind).size())
                              : "did you mean `roux explain " + kind + "/" + near + "`?");
    return true;
  }
  return false;
}

}  // namespace runner::cli
