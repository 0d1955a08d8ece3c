#include "runner/cli/launch_config.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "runner/core/files.h"
#include "runner/recipe/read.h"
#include "runner/registry/registry.h"

namespace runner::cli {
namespace {

using core::Node;

std::optional<Node> read(const std::string& path, core::Diagnostics& diagnostics) {
  const recipe::Limits limits;
  auto text = core::read_file(path, limits.file_bytes_max);
  if (!text) {
    diagnostics.error({}, text.failure().message, text.failure().hint);
    return std::nullopt;
  }
  const auto source =
      std::make_shared<const core::Source>(core::Source{path, std::move(text).value(), core::Source::Kind::kFile});
  auto node = recipe::read_yaml(source, limits, diagnostics);
  if (node && node->is_null()) node = Node::mapping(node->place());  // all of it is comments
  if (node && !node->is_mapping()) {
    diagnostics.error(node->place(), "this is no mapping", "write launch: {...}");
    return std::nullopt;
  }
  return node;
}

}  // namespace

std::string config_path() {
  if (const char* file = std::getenv("ROUX_CONFIG_FILE"); file != nullptr) return file;
  const char* home = std::getenv("HOME");
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  const std::string base = folder != nullptr && *folder != '\0'
                               ? std::string(folder)
                               : std::string(home != nullptr ? home : ".") + "/.config";
  return base + "/roux/launch.yaml";
}

std::string config_in_use(core::Diagnostics& diagnostics) {
  const std::string path = config_path();
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return "";
  const auto node = read(path, diagnostics);
  if (!node || node->entries().empty()) return "";
  for (const Node::Entry& entry : node->entries()) {
    if (entry.key == "launch" && entry.value.is_mapping()) continue;
    diagnostics.error(entry.key_place, "the file of this machine holds launch: {...} alone, got " + entry.key,
                      "what is to be trained stands in the recipe");
  }
  return path;
}

core::Result<Node> read_launch_config(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Node::mapping();
  core::Diagnostics diagnostics;
  const auto node = read(path, diagnostics);
  if (!node) return core::Failure{path + ": " + diagnostics.all().front().message};
  const Node* launch = node->find("launch");
  return launch != nullptr && launch->is_mapping() ? *launch : Node::mapping();
}

std::string launch_config_text(const Node& launch) {
  std::string text =
      "# What this machine says about `launch` where a recipe says nothing. Flags and ROUX_LAUNCH_... win over it, "
      "too.\n"
      "launch:\n";
  const registry::Fragment* schema = registry::Registry::builtin().find("section", "launch");
  for (const registry::Property& property : schema->properties) {
    const Node* value = launch.find(property.name);
    const Node fallback = property.default_value.value_or(Node::null());
    text += (value != nullptr ? "  " : "  # ") + property.name + ": " +
            core::to_json(value != nullptr ? *value : fallback, -1) + "\n";
  }
  if (launch.entries().empty()) text.replace(text.find("launch:\n"), 8, "launch: {}\n");
  return text;
}

}  // namespace runner::cli
