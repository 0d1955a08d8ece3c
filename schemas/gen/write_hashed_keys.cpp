#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "runner/core/text/text.h"
#include "runner/recipe/read.h"
#include "runner/registry/fragment.h"
#include "runner/registry/validator.h"
#include "schemas/gen/generator.h"

namespace schemas::gen {
namespace {

using runner::core::Diagnostics;
using runner::core::Node;
using runner::registry::Fragment;
using runner::registry::Property;

constexpr const char* kDescription =
    "Which keys the recipe hash counts: `always`, or, of keys that came later, where the value is not the first "
    "default, which is listed here. The target `reference` adds new keys; a listed key is never changed.";

/// The committed file, of which everything has to be used.
class Committed {
 public:
  Committed(const std::string& path, const std::string& text, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    if (text.empty()) return;
    const auto source =
        std::make_shared<runner::core::Source>(runner::core::Source{path, text, runner::core::Source::Kind::kFile});
    if (std::optional<Node> read = runner::recipe::read_json(source, {}, diagnostics)) root_ = *std::move(read);
  }

  bool is_always(const std::string& fragment, const std::string& name) {
    Node* names = part("always", fragment);
    if (names == nullptr) return false;
    return std::erase_if(names->items(),
                         [&](const Node& item) { return item.is_string() && item.as_string() == name; }) > 0;
  }

  std::optional<Node> first_default(const std::string& fragment, const std::string& name) {
    Node* names = part("later", fragment);
    const Node* value = names != nullptr ? names->find(name) : nullptr;
    if (value == nullptr) return std::nullopt;
    Node found = *value;
    names->erase(name);
    return found;
  }

  void report_what_is_left() {
    const auto report = [this](const runner::core::Location& location, const std::string& fragment,
                               const std::string& name) {
      diagnostics_.error(location, fragment + " has no key " + runner::core::in_quotes(name),
                         "rename a key here too; remove it when it is gone");
    };
    for (const char* name : {"always", "later"}) {
      const Node* fragments = root_.find(name);
      if (fragments == nullptr) continue;
      for (const Node::Entry& fragment : fragments->entries()) {
        for (const Node& item : fragment.value.items()) report(item.location(), fragment.key, item.scalar_text());
        for (const Node::Entry& key : fragment.value.entries()) report(key.key_location, fragment.key, key.key);
      }
    }
  }

 private:
  Node* part(const char* name, const std::string& fragment) {
    Node* fragments = root_.find(name);
    return fragments != nullptr ? fragments->find(fragment) : nullptr;
  }

  Node root_;
  Diagnostics& diagnostics_;
};

/// A line for each fragment, so that branches with new keys merge.
std::string as_lines(const Node& fragments) {
  std::string text = "{";
  for (const Node::Entry& entry : fragments.entries()) {
    text += (text == "{" ? "\n    \"" : ",\n    \"") + entry.key + "\": " + to_json(entry.value, -1);
  }
  return text + "\n  }";
}

}  // namespace

void write_hashed_keys(const std::string& path, const runner::registry::Registry& registry, Schemas& schemas,
                       Outputs& outputs, Diagnostics& diagnostics) {
  Committed committed(path, schemas.hashed_keys_json, diagnostics);
  Node always = Node::mapping(), later = Node::mapping();
  const runner::registry::AliasTable none;
  runner::registry::Validator validator(registry, none, diagnostics);
  for (auto& [kind, fragments] : schemas.fragments) {
    for (Fragment& fragment : fragments) {
      const std::string at = fragment.path();
      Node counted = Node::sequence(), defaults = Node::mapping();
      for_each_key(fragment, [&](const std::string& name, Property& key) {
        if (committed.is_always(at, name)) {
          counted.items().push_back(Node::string(name));
        } else if (std::optional<Node> first = committed.first_default(at, name)) {
          defaults.set(name, *std::move(first));
        } else if (key.default_value) {
          defaults.set(name, validator.default_value(key));
        } else {  // no recipe can leave it out, or its value follows from others
          counted.items().push_back(Node::string(name));
        }
      });
      if (!counted.items().empty()) always.set(at, std::move(counted));
      if (!defaults.entries().empty()) later.set(at, std::move(defaults));
    }
  }
  committed.report_what_is_left();
  schemas.first_defaults_json = to_json(later, -1);
  outputs["schemas/hashed_keys.json"] = "{\n  \"description\": " + to_json(Node::string(kDescription), -1) +
                                        ",\n  \"always\": " + as_lines(always) + ",\n  \"later\": " + as_lines(later) +
                                        "\n}\n";
}

}  // namespace schemas::gen
