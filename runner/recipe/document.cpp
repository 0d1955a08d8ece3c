#include "runner/recipe/document.h"

#include <string>

namespace runner::recipe {
namespace {

using core::Node;

std::string ending_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  return name.substr(dot);
}

bool is_jsonnet(const std::string& ending) { return ending == ".jsonnet" || ending == ".libsonnet"; }
bool is_yaml(const std::string& ending) { return ending == ".yaml" || ending == ".yml" || ending.empty(); }

const char* kind_word(const Node& node) {
  if (node.is_sequence()) return "a list";
  if (node.is_null()) return "nothing";
  return "a single value";
}

}  // namespace

bool has_recipe_ending(const std::string& name) {
  const std::string ending = ending_of(name);
  return is_jsonnet(ending) || is_yaml(ending) || ending == ".json";
}

bool looks_like_recipe(const std::string& word) {
  for (const char* ending : {".yaml", ".yml", ".json", ".jsonnet"}) {
    if (word.ends_with(ending)) return true;
  }
  return false;
}

std::optional<Node> read_document(std::shared_ptr<const core::Source> source, const ComposeOptions& options,
                                  Sources& sources, core::Diagnostics& diagnostics) {
  const std::string ending = ending_of(source->name);
  std::optional<Node> node;
  if (is_jsonnet(ending)) {
    node = read_jsonnet(source, options, sources, diagnostics);
  } else if (ending == ".json") {
    node = read_json(source, options.limits, diagnostics);
  } else {
    node = read_yaml_leniently(source, options.limits, diagnostics);
  }
  if (!node || node->is_mapping()) return node;
  const core::Location location = node->location().known() ? node->location() : core::Location{source, 0, 0, 1};
  diagnostics.error(location, "a recipe is a mapping of keys, got " + std::string(kind_word(*node)),
                    !is_yaml(ending)      ? "write { ... } at the top level"
                    : node->is_sequence() ? "remove the dashes at the top level"
                                          : "write lines such as training: {max_steps: 100}");
  return std::nullopt;
}

}  // namespace runner::recipe
