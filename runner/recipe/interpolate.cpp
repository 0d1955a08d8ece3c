#include "runner/recipe/interpolate.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "runner/core/path.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/renamed_keys.h"

namespace runner::recipe {
namespace {

using core::Location;
using core::Node;

bool has_reference(const Node& node) { return node.is_string() && node.as_string().find("${") != std::string::npos; }

/// The reference that is most likely meant.
core::Hint instead(const std::string& reference) { return {"did you mean " + reference + "?", reference}; }

struct Size {
  std::int64_t nodes = 1;
  int depth = 0;
};

Size measure(const Node& node) {
  Size size;
  const auto add = [&](const Node& child) {
    const Size below = measure(child);
    size.nodes += below.nodes;
    size.depth = std::max(size.depth, below.depth + 1);
  };
  for (const Node& item : node.items()) add(item);
  for (const auto& entry : node.entries()) add(entry.value);
  return size;
}

// Position of the `}` that closes the `${` at `begin`; npos if missing. References may nest in defaults.
std::size_t find_end(std::string_view text, std::size_t begin) {
  int depth = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text.substr(at, 2) == "${") {
      ++depth;
      ++at;
    } else if (text[at] == '}' && --depth == 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

class Interpolation {
 public:
  Interpolation(Node& root, const std::string& recipe_dir, const Limits& limits, core::Diagnostics& diagnostics)
      : root_(root), recipe_dir_(recipe_dir), limits_(limits), diagnostics_(diagnostics) {}

  void run() { resolve_tree(root_, ""); }

 private:
  // One reference that is being followed: the value that holds it, and where that value stands in the recipe.
  struct Following {
    const Node* node;
    std::string path;
  };

  void resolve_tree(Node& node, const std::string& path) {
    if (exhausted_) return;
    if (is_open(node)) return resolve_text(node, path);
    for (std::size_t i = 0; i < node.items().size(); ++i) resolve_tree(node.items()[i], core::join_path(path, i));
    for (auto& entry : node.entries()) {
      if (entry.key.find("${") != std::string::npos && keys_told_.insert(&entry.key).second) {
        diagnostics_.error(entry.key_location, "a key cannot hold a reference, got " + core::quote(entry.key),
                           "use references in values only");
      }
      resolve_tree(entry.value, core::join_path(path, entry.key));
    }
  }

  // Text that still holds a reference; `${` that came from `$${` or from the environment is the user's own.
  bool is_open(const Node& node) const { return has_reference(node) && !settled_.contains(&node); }

  void settle_texts(const Node& node) {
    if (has_reference(node)) settled_.insert(&node);
    for (const Node& item : node.items()) settle_texts(item);
    for (const auto& entry : node.entries()) settle_texts(entry.value);
  }

  // Replaces the references in the text of `node` by their values.
  void resolve_text(Node& node, const std::string& path) {
    const auto self = [&](const Following& f) { return f.node == &node; };
    const auto again = std::find_if(chain_.begin(), chain_.end(), self);
    if (again != chain_.end()) return refuse_cycle(node, again - chain_.begin());
    if (static_cast<int>(chain_.size()) >= limits_.interpolation_depth_max) {
      return refuse(node, "",
                    "references are nested more than " + std::to_string(limits_.interpolation_depth_max) + " times",
                    "");
    }
    chain_.push_back({&node, path});
    const std::string text = node.as_string();
    std::vector<core::HistoryStep> steps = node.history();
    Node result;
    const bool whole = text.starts_with("${") && find_end(text, 0) == text.size() - 1;
    const bool good =
        whole ? reference(text, node.location(), text, result) : joined_text(text, node.location(), text, result);
    chain_.pop_back();
    if (!good) {
      result = Node::refused();
    } else {
      // Outermost first: the steps of the value itself, then of what it refers to.
      steps.insert(steps.end(), result.history().begin(), result.history().end());
      result.set_history(std::move(steps));
    }
    result.set_location(node.location());
    node = std::move(result);
    settle_texts(node);
  }

  // Text with references in it, `$${` being a literal `${`. The result is text.
  bool joined_text(std::string_view text, const Location& location, const std::string& written, Node& result) {
    std::string out;
    std::vector<core::HistoryStep> steps;
    for (std::size_t at = 0; at < text.size();) {
      if (text.substr(at, 3) == "$${") {
        out += "${";
        at += 3;
        continue;
      }
      if (text.substr(at, 2) != "${") {
        out += text[at++];
        continue;
      }
      const std::size_t end = find_end(text, at);
      if (end == std::string_view::npos) {
        return fail(location, text.substr(at), written, "${ without its closing }", "write $${ for a literal ${");
      }
      Node value;
      const std::string_view one = text.substr(at, end + 1 - at);
      if (!reference(one, location, written, value)) return false;
      if (value.is_mapping() || value.is_sequence() || value.is_null()) {
        const char* kind = value.is_mapping() ? "a mapping" : value.is_sequence() ? "a list" : "empty";
        return fail(location, one, written, std::string(one) + " is " + kind + " and cannot be a part of a text",
                    "refer to one value of it, or let the reference be the whole value");
      }
      out += value.scalar_text();
      for (const core::HistoryStep& step : value.history()) {
        // "${a}${a}" of "${b}${b}" of ... would double its history each time.
        const bool known = std::find(steps.begin(), steps.end(), step) != steps.end();
        if (!known && steps.size() < kStepsMax) steps.push_back(step);
      }
      if (static_cast<std::int64_t>(out.size()) > limits_.text_bytes_max) {
        return fail(location, one, written,
                    "references make this text longer than " + std::to_string(limits_.text_bytes_max) + " bytes", "");
      }
      at = end + 1;
    }
    result = Node::string(std::move(out));
    result.set_history(std::move(steps));
    return true;
  }

  // One `${...}`: the value it stands for.
  bool reference(std::string_view written_reference, const Location& location, const std::string& written,
                 Node& result) {
    const std::string name(written_reference.substr(2, written_reference.size() - 3));
    if (name.starts_with("env:")) return from_environment(written_reference, name.substr(4), location, written, result);
    if (name == "recipe_dir") {
      result = Node::string(recipe_dir_);
      result.add_history("variable recipe_dir");
      return true;
    }
    if (name.empty())
      return fail(location, written_reference, written, "${} has no name",
                  "write ${vars.name}, ${env:NAME} or a path of the recipe");
    const auto steps = core::parse_path(renamed_path(name));
    if (!steps) {
      return fail(location, written_reference, written, steps.failure().message,
                  "write ${vars.name}, ${env:NAME} or a path of the recipe");
    }
    return from_recipe(written_reference, steps.value(), location, written, result);
  }

  bool from_environment(std::string_view reference_text, const std::string& inside, const Location& location,
                        const std::string& written, Node& result) {
    const std::size_t dash = inside.find(":-");
    const std::string name = inside.substr(0, dash);
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(),
                                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!is_name) {
      return fail(location, reference_text, written, core::quote(name) + " is not a name of an environment variable",
                  "write ${env:NAME} or ${env:NAME:-default}");
    }
    const char* value = std::getenv(name.c_str());
    if (value && core::find_invalid_utf8(value) != std::string_view::npos) {
      return fail(location, reference_text, written, "the environment variable " + name + " is not valid UTF-8", "");
    }
    // As in a shell, `:-` stands in for a variable that is set to nothing, too.
    if (value && (*value != '\0' || dash == std::string::npos)) {
      result = Node::string(value);
    } else if (dash != std::string::npos) {
      const std::string otherwise = inside.substr(dash + 2);
      if (!joined_text(otherwise, location, written, result)) return false;
    } else {
      return fail(location, reference_text, written, "the environment variable " + name + " is not set",
                  environment_hint(name));
    }
    const std::string plain = "${env:" + name + "}";
    result.add_history({plain, core::Origin::kEnvironment, plain});
    return true;
  }

  static core::Hint environment_hint(const std::string& name) {
    std::vector<std::string> names;
    for (char** variable = environ; *variable; ++variable) {
      const std::string_view entry = *variable;
      names.emplace_back(entry.substr(0, entry.find('=')));
    }
    const std::string near = core::closest(name, names);
    if (!near.empty()) return instead("${env:" + near + "}");
    return "set it, or give a default: ${env:" + name + ":-default}";
  }

  bool from_recipe(std::string_view reference_text, const std::vector<core::PathStep>& steps, const Location& location,
                   const std::string& written, Node& result) {
    Node* node = &root_;
    std::string path;
    for (const core::PathStep& step : steps) {
      if (is_open(*node)) resolve_text(*node, path);
      Node* child = nullptr;
      if (step.is_index()) {
        if (static_cast<std::size_t>(step.index) < node->items().size())
          child = &node->items()[static_cast<std::size_t>(step.index)];
      } else {
        child = node->find(step.key);
      }
      if (!child) {
        if (node->is_refused()) return false;  // told already
        return nothing_there(reference_text, *node, path, step, location, written);
      }
      path = step.is_index() ? core::join_path(path, static_cast<std::size_t>(step.index))
                             : core::join_path(path, step.key);
      node = child;
    }
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      if (chain_[i].node == node || !contains(*node, *chain_[i].node)) continue;
      std::string circle;
      for (std::size_t j = i; j < chain_.size(); ++j) circle += chain_[j].path + " -> ";
      return fail(location, reference_text, written,
                  "the value refers to itself: " + circle + path + ", which holds " + chain_[i].path,
                  "refer to a part of it that does not refer back");
    }
    // Its own chain: what a referenced block holds may refer on.
    if (is_open(*node)) {
      resolve_text(*node, path);
    } else if (node->is_mapping() || node->is_sequence()) {
      chain_.push_back({node, path});
      if (static_cast<int>(chain_.size()) > limits_.interpolation_depth_max) {
        chain_.pop_back();
        return fail(location, reference_text, written,
                    "references are nested more than " + std::to_string(limits_.interpolation_depth_max) + " times",
                    "");
      }
      resolve_tree(*node, path);
      chain_.pop_back();
    }
    if (node->is_refused()) return false;
    return copy(*node, path, reference_text, location, written, result);
  }

  bool copy(const Node& node, const std::string& path, std::string_view reference_text, const Location& location,
            const std::string& written, Node& result) {
    const Size size = measure(node);
    nodes_added_ += size.nodes;
    if (nodes_added_ > limits_.alias_nodes_max) {
      exhausted_ = true;
      return fail(location, reference_text, written,
                  "references repeat more than " + std::to_string(limits_.alias_nodes_max) + " values",
                  "references to lists of references grow quickly: use fewer levels");
    }
    if (size.depth > limits_.nesting_depth_max) {
      return fail(location, reference_text, written,
                  "references nest values more than " + std::to_string(limits_.nesting_depth_max) + " levels deep", "");
    }
    std::vector<core::HistoryStep> steps{"variable " + path};
    steps.insert(steps.end(), node.history().begin(), node.history().end());
    result = node;
    result.set_history(std::move(steps));
    return true;
  }

  static bool contains(const Node& tree, const Node& wanted) {
    if (&tree == &wanted) return true;
    const auto below = [&](const Node& child) { return contains(child, wanted); };
    if (std::any_of(tree.items().begin(), tree.items().end(), below)) return true;
    return std::any_of(tree.entries().begin(), tree.entries().end(),
                       [&](const auto& entry) { return below(entry.value); });
  }

  bool nothing_there(std::string_view reference_text, const Node& parent, const std::string& parent_path,
                     const core::PathStep& step, const Location& location, const std::string& written) {
    const std::string where = step.is_index() ? core::join_path(parent_path, static_cast<std::size_t>(step.index))
                                              : core::join_path(parent_path, step.key);
    std::vector<std::string> keys;
    for (const auto& entry : parent.entries()) keys.push_back(entry.key);
    if (parent_path.empty()) keys.insert(keys.end(), {"recipe_dir"});
    const std::string near = step.is_index() ? "" : core::closest(step.key, keys);
    core::Hint hint = "a reference names what is written in the recipe; defaults are filled in later";
    if (step.is_index() && parent.is_sequence()) {
      hint = parent_path + " has " + std::to_string(parent.items().size()) +
             (parent.items().size() == 1 ? " entry" : " entries");
    } else if (!near.empty()) {
      hint = instead("${" + core::join_path(parent_path, near) + "}");
    } else if (parent_path.empty()) {
      const Node* vars = root_.find("vars");
      if (!vars && step.key == "vars") hint = "write vars: {NAME: VALUE} and refer to ${vars.NAME}";
      if (vars && vars->find(step.key)) hint = instead("${vars." + step.key + "}");
      if (std::getenv(step.key.c_str())) hint = instead("${env:" + step.key + "}");
    } else if (parent_path == "vars" && !keys.empty()) {
      hint = "vars has ";
      for (std::size_t i = 0; i < std::min<std::size_t>(keys.size(), 12); ++i) hint.text += (i ? ", " : "") + keys[i];
    }
    return fail(location, reference_text, written,
                std::string(reference_text) + " refers to nothing: " + where + " not found", hint);
  }

  void refuse_cycle(Node& node, std::ptrdiff_t begin) {
    std::string circle;
    for (std::size_t i = static_cast<std::size_t>(begin); i < chain_.size(); ++i) circle += chain_[i].path + " -> ";
    refuse(node, node.as_string(),
           "the references have a cycle: " + circle + chain_[static_cast<std::size_t>(begin)].path,
           "give one of them a value");
  }

  void refuse(Node& node, std::string_view reference_text, std::string message, core::Hint hint) {
    fail(node.location(), reference_text, node.as_string(), std::move(message), std::move(hint));
    node = Node::refused(node.location());
  }

  // Points at the reference itself where it can be found in the line; a text may hold several.
  bool fail(const Location& location, std::string_view reference_text, const std::string& written, std::string message,
            core::Hint hint) {
    if (++errors_ >= kErrorsMax) exhausted_ = true;
    diagnostics_.error(narrowed(location, reference_text, written), std::move(message), std::move(hint));
    return false;
  }

  static Location narrowed(const Location& location, std::string_view reference_text, const std::string& written) {
    if (!location.known() || location.line <= 0 || reference_text.empty() || reference_text == written) return location;
    std::string_view text = location.source->text;
    for (int line = 1; line < location.line && !text.empty(); ++line)
      text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    text = text.substr(0, text.find('\n'));
    std::size_t begin = 0;
    for (int column = 1; column < location.column && begin < text.size(); ++column)
      begin += std::max<std::size_t>(core::utf8_length(text, begin), 1);
    const std::size_t found = text.find(reference_text, begin);
    if (found == std::string_view::npos) return location;
    Location narrow = location;
    narrow.column += static_cast<int>(core::count_code_points(text.substr(begin, found - begin)));
    narrow.width = static_cast<int>(core::count_code_points(reference_text));
    return narrow;
  }

  static constexpr std::size_t kStepsMax = 32;  // of one text's history
  static constexpr int kErrorsMax = 100;        // the rest is omitted after that

  Node& root_;
  const std::string& recipe_dir_;
  const Limits& limits_;
  core::Diagnostics& diagnostics_;
  std::vector<Following> chain_;
  std::set<const std::string*> keys_told_;
  std::set<const Node*> settled_;
  std::int64_t nodes_added_ = 0;
  int errors_ = 0;
  bool exhausted_ = false;
};

}  // namespace

void interpolate(Node& root, const std::string& recipe_dir, const Limits& limits, core::Diagnostics& diagnostics) {
  Interpolation(root, recipe_dir, limits, diagnostics).run();
}

}  // namespace runner::recipe
