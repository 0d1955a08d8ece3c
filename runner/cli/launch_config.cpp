#include "runner/cli/launch_config.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "runner/core/platform/files.h"
#include "runner/recipe/read.h"
#include "runner/registry/registry.h"

namespace runner::cli {
namespace {

using core::Node;

bool only_comments(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string::npos && line[begin] != '#') return false;
  }
  return true;
}

/// The keys of the file that have a value; reports those that it may not have.
Node read(const std::string& path, core::Diagnostics& diagnostics) {
  const recipe::Limits limits;
  auto text = core::read_file(path, limits.file_bytes_max);
  if (!text) {
    diagnostics.error({}, text.failure().message, text.failure().hint);
    return Node::mapping();
  }
  if (only_comments(text.value())) return Node::mapping();
  const auto source =
      std::make_shared<const core::Source>(core::Source{path, std::move(text).value(), core::Source::Kind::kFile});
  const auto node = recipe::read_yaml(source, limits, diagnostics);
  if (!node) return Node::mapping();
  Node defaults = Node::mapping();
  if (!node->is_mapping()) diagnostics.error(node->location(), "must be a mapping", "write launch: {...}");
  for (const Node::Entry& entry : node->entries()) {
    const bool is_launch = entry.key == "launch";
    if (!is_launch && entry.key != "device" && entry.key != "precision" && entry.key != "parallelism") {
      diagnostics.error(
          entry.key_location,
          "the launch file may only contain `launch`, `device`, `precision` and `parallelism`, got " + entry.key,
          "put other settings in the recipe");
    } else if (is_launch && !entry.value.is_mapping() && !entry.value.is_null()) {
      diagnostics.error(entry.value.location(), "launch must be a mapping", "write launch: {...}");
    } else if (!entry.value.is_null() && !(is_launch && entry.value.entries().empty())) {
      defaults.set(entry.key, entry.value);
    }
  }
  return defaults;
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
  return read(path, diagnostics).entries().empty() ? "" : path;
}

core::Result<Node> read_launch_config(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Node::mapping();
  core::Diagnostics diagnostics;
  Node defaults = read(path, diagnostics);
  if (!diagnostics.has_errors()) return defaults;
  const core::Diagnostic& first = diagnostics.all().front();
  return core::Failure{(first.location.known() ? first.location.text() + ": " : "") + first.message, first.hint};
}

std::string launch_config_text(const Node& defaults) {
  const Node* written = defaults.find("launch");
  const Node launch = written != nullptr ? *written : Node::mapping();
  std::string text =
      "# This machine's defaults. Recipes, ROUX_LAUNCH_... and flags override them.\n"
      "launch:\n";
  const registry::Fragment* schema = registry::Registry::builtin().find("section", "launch");
  for (const registry::Property& property : schema->properties) {
    const Node* value = launch.find(property.name);
    const Node fallback = property.default_value.value_or(Node::null());
    text += (value != nullptr ? "  " : "  # ") + property.name + ": " +
            core::to_json(value != nullptr ? *value : fallback, -1) + "\n";
  }
  if (launch.entries().empty()) text.replace(text.find("launch:\n"), 8, "launch: {}\n");
  const Node* device = defaults.find("device");
  text += device != nullptr ? section_text("device", *device) : "# device: \"auto\"\n";
  const Node* precision = defaults.find("precision");
  text += precision != nullptr ? section_text("precision", *precision) : "# precision: {mode: \"32-true\"}\n";
  const Node* parallelism = defaults.find("parallelism");
  return text + (parallelism != nullptr ? section_text("parallelism", *parallelism) : "# parallelism: {shard: null}\n");
}

std::string section_text(const std::string& key, const Node& value) {
  if (!value.is_mapping()) return key + ": " + core::to_json(value, -1) + "\n";
  std::string text = key + ":\n";
  for (const Node::Entry& entry : value.entries()) {
    text += "  " + entry.key + ": " + core::to_json(entry.value, -1) + "\n";
  }
  return text;
}

}  // namespace runner::cli
