#include "runner/recipe/override.h"

#include <cctype>
#include <vector>

#include "runner/core/path.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/merge.h"
#include "runner/recipe/renamed_keys.h"

namespace runner::recipe {
namespace {

using core::Location;
using core::Node;
using core::PathStep;
using Steps = std::vector<PathStep>;

constexpr const char* kUsage = "write path=value, +path=value to append to a list, or ~path to delete";

std::string what_it_is(const Node& node) {
  switch (node.kind()) {
    case Node::Kind::kNull: return "empty";
    case Node::Kind::kSequence: return "a list";
    case Node::Kind::kMapping: return "a mapping";
    case Node::Kind::kString: return core::quote(node.as_string());
    default: return node.scalar_text();
  }
}

// One change, applied along a path; reports errors of the path.
class Change {
 public:
  Change(Node& root, Location location, Steps steps, core::Diagnostics& diagnostics)
      : root_(root), location_(std::move(location)), steps_(std::move(steps)), diagnostics_(diagnostics) {}

  void set(Node value) {
    Node* parent = walk(steps_.size() - 1, true);
    if (!parent) return;
    const PathStep& last = steps_.back();
    if (last.is_index()) {
      if (Node* item = item_of(*parent, steps_.size() - 1)) *item = std::move(value);
      return;
    }
    if (!accept_key(*parent, steps_.size() - 1)) return;
    if (last.key == "type" && value.is_string()) {
      // As in `extends`: keys of one component mean nothing to another.
      const Node* old = parent->find("type");
      if (old && !old->same_value(value)) parent->entries().clear();
    }
    parent->set(last.key, std::move(value), location_);
  }

  void append(Node value) {
    Node* list = walk(steps_.size(), true);
    if (!list) return;
    if (list->is_null()) *list = Node::sequence({}, location_);
    if (list->is_mapping())
      return error(path_to(steps_.size()) + " is a mapping, only a list can be appended to",
                   "set a key of it: path.key=value");
    if (!list->is_sequence()) {
      // `metrics: accuracy` is a list of one in short.
      Node only = std::move(*list);
      const Location only_location = only.location();
      *list = Node::sequence({}, only_location);
      list->items().push_back(std::move(only));
    }
    list->items().push_back(std::move(value));
  }

  void erase() {
    Node* parent = walk(steps_.size() - 1, false);
    if (!parent) return;
    const PathStep& last = steps_.back();
    if (last.is_index()) {
      if (!item_of(*parent, steps_.size() - 1)) return;
      parent->items().erase(parent->items().begin() + last.index);
    } else if (!parent->is_mapping() || !parent->erase(last.key)) {
      missing_key(*parent, steps_.size() - 1);
    }
  }

 private:
  void error(std::string message, std::string hint = "") {
    diagnostics_.error(location_, std::move(message), std::move(hint));
  }

  std::string path_to(std::size_t count) const {
    return count == 0 ? "the recipe"
                      : core::path_text(Steps(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(count)));
  }

  /// The rest of the path behind what precedes it: `.r`, `[0]`.
  std::string path_from(std::size_t at) const {
    if (at >= steps_.size()) return "";
    const std::string rest = core::path_text(Steps(steps_.begin() + static_cast<std::ptrdiff_t>(at), steps_.end()));
    return rest.starts_with('[') ? rest : "." + rest;
  }

  void missing_key(const Node& parent, std::size_t at) {
    std::vector<std::string> keys;
    for (const auto& entry : parent.entries()) keys.push_back(entry.key);
    const std::string near = core::closest(steps_[at].key, keys);
    std::string hint;
    if (!near.empty()) {
      Steps meant = steps_;
      meant[at].key = near;
      hint = "did you mean " + core::quote(core::path_text(meant)) + "?";
    } else if (!keys.empty()) {
      hint = path_to(at) + " holds ";
      for (std::size_t i = 0; i < std::min<std::size_t>(keys.size(), 12); ++i) hint += (i ? ", " : "") + keys[i];
    }
    error("there is no " + path_to(at + 1), hint);
  }

  Node* item_of(Node& list, std::size_t at) {
    if (!list.is_sequence()) {
      error(path_to(at) + " is " + what_it_is(list) + ", not a list, so it has no [" +
            std::to_string(steps_[at].index) + "]");
      return nullptr;
    }
    const std::size_t size = list.items().size();
    if (static_cast<std::size_t>(steps_[at].index) < size)
      return &list.items()[static_cast<std::size_t>(steps_[at].index)];
    const std::string count = size == 1 ? "1 entry" : std::to_string(size) + " entries";
    error(path_to(at) + " has " + count + ", there is no [" + std::to_string(steps_[at].index) + "]",
          size == 0 ? "append one with +path=value"
                    : "counted from [0] to [" + std::to_string(size - 1) + "]; +path=value appends");
    return nullptr;
  }

  // Whether a key can be looked for in `node`; what is empty becomes a mapping, a bare name becomes {type: name}.
  bool accept_key(Node& node, std::size_t at) {
    if (node.is_null()) node = Node::mapping(location_);
    expand_short_form(node);
    if (node.is_mapping()) return true;
    const std::string& key = steps_[at].key;
    const bool is_number = !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
    std::string way_out;
    if (node.is_sequence() && is_number) {
      way_out = "write " + path_to(at) + "[" + key + "]" + path_from(at + 1);
    } else if (node.is_sequence()) {
      way_out = "name its entry first: " + path_to(at) + "[0]";
    }
    error(path_to(at) + " is " + what_it_is(node) + ", it has no key " + core::quote(steps_[at].key), way_out);
    return false;
  }

  // The node after `count` steps; makes missing mappings on the way when asked to.
  Node* walk(std::size_t count, bool make) {
    Node* node = &root_;
    for (std::size_t at = 0; at < count; ++at) {
      if (steps_[at].is_index()) {
        node = item_of(*node, at);
        if (!node) return nullptr;
        continue;
      }
      if (make && !accept_key(*node, at)) return nullptr;
      Node* child = node->find(steps_[at].key);
      if ((!child || child->is_null()) && make && at + 1 < steps_.size() && steps_[at + 1].is_index()) {
        error("the recipe has no " + path_to(at + 1) + ", so there is no " + path_to(at + 2),
              "write the whole list: " + path_to(at + 1) + "=[...]");
        return nullptr;
      }
      if (!child && make) child = &node->set(steps_[at].key, Node::null(location_), location_);
      if (!child) {
        missing_key(*node, at);
        return nullptr;
      }
      node = child;
    }
    return node;
  }

  Node& root_;
  Location location_;
  Steps steps_;
  core::Diagnostics& diagnostics_;
};

}  // namespace

void apply_set(Node& root, const std::string& text, const std::string& shown_as, const Limits& limits,
               core::Diagnostics& diagnostics) {
  const auto source = std::make_shared<const core::Source>(core::Source{shown_as, "", core::Source::Kind::kFlag});
  const Location location{source, 0, 0, 1};
  if (core::find_invalid_utf8(text) != std::string::npos) {
    return diagnostics.error(location, "the flag is not valid UTF-8", "set a UTF-8 locale in the terminal");
  }
  const char mode = text.empty() ? ' ' : text[0];
  const std::size_t begin = mode == '+' || mode == '~' ? 1 : 0;
  // The first = outside of ["..."]: keys may hold one.
  std::size_t equals = begin;
  for (bool quoted = false; equals < text.size() && (text[equals] != '=' || quoted); ++equals)
    quoted ^= text[equals] == '"';
  if (mode == '~' && equals < text.size())
    return diagnostics.error(location, "~ deletes a key and accepts no value", "write ~" + text.substr(1, equals - 1));
  if (mode != '~' && equals >= text.size())
    return diagnostics.error(location, "missing \"=\" between path and value", kUsage);

  const std::string_view written = std::string_view(text).substr(begin, equals - begin);
  const std::string path = renamed_path(written);
  if (path != written) diagnostics.notice(location, std::string(written) + " is read as " + path);
  const auto steps = core::parse_path(path);
  if (!steps) return diagnostics.error(location, steps.failure().message, steps.failure().hint);
  if (steps.value().size() > static_cast<std::size_t>(limits.nesting_depth_max)) {
    return diagnostics.error(location,
                             "the path is more than " + std::to_string(limits.nesting_depth_max) + " levels deep");
  }
  if (steps.value().front().key == "extends") {
    return diagnostics.error(location, "extends is resolved before --set is applied",
                             "merge a file into the recipe with --set-file FILE");
  }
  if (steps.value().front().is_index()) return diagnostics.error(location, "a path begins with a key", kUsage);
  Change change(root, location, steps.value(), diagnostics);
  if (mode == '~') return change.erase();
  // A lone mark is meant as itself, such as the delimiter of a table; to YAML it would be the begin of something.
  const std::string after = text.substr(equals + 1);
  const bool is_mark = after.size() == 1 && std::ispunct(static_cast<unsigned char>(after[0])) != 0 && after != "~";
  auto value = is_mark ? Node::string(after, location) : read_value(source, after, diagnostics);
  if (!value) return;
  value->add_history(shown_as.substr(0, shown_as.find_first_of(" =")));
  mode == '+' ? change.append(std::move(*value)) : change.set(std::move(*value));
}

void set_value(Node& root, const std::string& path, Node value, core::Diagnostics& diagnostics) {
  const auto steps = core::parse_path(path);
  if (!steps) return diagnostics.error(value.location(), steps.failure().message, steps.failure().hint);
  Change change(root, value.location(), steps.value(), diagnostics);
  change.set(std::move(value));
}

}  // namespace runner::recipe
