#include "runner/sweep/spec/constraint_context.h"

#include <utility>

#include "runner/core/diagnostics.h"
#include "runner/recipe/interpolate.h"
#include "runner/recipe/override.h"

namespace runner::sweep {
namespace {

using core::Node;

/// The sections that the texts of a tree refer to.
void find_references(const Node& tree, std::set<std::string>& sections) {
  for (const Node& item : tree.items()) find_references(item, sections);
  for (const Node::Entry& entry : tree.entries()) find_references(entry.value, sections);
  if (!tree.is_string()) return;
  const std::string& text = tree.as_string();
  for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 2)) {
    const std::string name = text.substr(at + 2, text.find_first_of(".[}:", at) - at - 2);
    if (name != "env" && name != "recipe_dir") sections.insert(name);
  }
}

/// Puts the texts with references back where the settled tree has what they came to. True when there was one.
bool reopen(Node& settled, const Node& open) {
  if (open.is_string() && has_references(open) && !settled.is_mapping() && !settled.is_sequence()) {
    settled = open;
    return true;
  }
  bool any = false;
  const std::size_t items = settled.items().size() == open.items().size() ? open.items().size() : 0;
  for (std::size_t i = 0; i < items; ++i) any |= reopen(settled.items()[i], open.items()[i]);
  for (const Node::Entry& entry : open.entries()) {
    if (Node* there = settled.find(entry.key)) any |= reopen(*there, entry.value);
  }
  return any;
}

}  // namespace

bool has_references(const Node& tree) {
  std::set<std::string> sections;
  find_references(tree, sections);
  return !sections.empty();
}

ConstraintContext::ConstraintContext(const Node& settled, const Node& open, std::set<std::string> sections,
                                     const std::vector<Node>& values, std::string recipe_dir)
    : recipe_dir_(std::move(recipe_dir)) {
  if (sections.empty()) return;
  for (const Node& value : values) {
    refers_ |= has_references(value);
    find_references(value, sections);
  }
  for (std::size_t before = 0; before != sections.size();) {
    before = sections.size();
    for (const std::string& section : std::set<std::string>(sections)) {
      if (const Node* block = open.find(section)) find_references(*block, sections);
    }
  }
  for (const std::string& section : sections) {
    const Node *block = settled.find(section), *written = open.find(section);
    if (block == nullptr) continue;
    Node& here = tree_.set(section, *block);
    if (written != nullptr) refers_ |= reopen(here, *written);
  }
}

Node ConstraintContext::with(std::vector<Assignment> assignments) const {
  Node recipe = tree_;
  core::Diagnostics told_by_the_preflight;
  for (Assignment& one : assignments) {
    if (tree_.find(one.path.substr(0, one.path.find_first_of(".["))) == nullptr) continue;
    recipe::set_value(recipe, one.path, std::move(one.value), told_by_the_preflight);
  }
  if (refers_) recipe::interpolate(recipe, recipe_dir_, {}, told_by_the_preflight);
  return recipe;
}

}  // namespace runner::sweep
