#include "runner/cli/group/config.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "runner/cli/launch_config.h"
#include "runner/cli/minimal_recipe.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/read.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"
#include "runner/resolve/sharding/words.h"

namespace runner::cli {

using core::Node;

std::optional<std::string> path_to_write(Session& session) {
  const std::string path = config_path();
  if (!path.empty()) return path;
  session.fail("ROUX_CONFIG_FILE is empty, so there is no launch file", "unset it, or set it to a file");
  return std::nullopt;
}

std::optional<std::string> path_of_new(Session& session, bool force) {
  const auto path = path_to_write(session);
  std::error_code error;
  if (!path || force || !std::filesystem::exists(*path, error)) return path;
  session.fail(*path + " already exists", "`roux config update` keeps its values, --force replaces it");
  return std::nullopt;
}

bool write_config(Session& session, const std::string& path, const std::string& text) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  for (const auto& result :
       {folder.empty() ? core::Result<void>() : core::make_folders(folder), core::write_output(path, text)}) {
    if (result) continue;
    session.fail(result.failure().message, result.failure().hint, core::kExitFailed);
    return false;
  }
  std::printf("wrote %s\n", core::escape_for_terminal(path).c_str());
  return true;
}

void check_sections(const Node& sections, core::Diagnostics& diagnostics) {
  const auto any = std::make_shared<const core::Source>(core::Source{"no recipe", kMinimalRecipe});
  Node whole = recipe::read_yaml(any, {}, diagnostics).value_or(Node::mapping());
  for (const Node::Entry& section : sections.entries()) {
    const Node* there = whole.find(section.key);
    const bool is_block = section.value.is_mapping() && section.value.find("type") != nullptr;
    // Beside init_from a model changes some of the configuration there.
    if (section.key == "model" && is_block && sections.find("init_from") != nullptr &&
        section.value.find("config") == nullptr) {
      Node model = section.value;
      model.set("config", Node::string("config.json"));
      whole.set(section.key, std::move(model));
      continue;
    }
    if (!section.value.is_mapping() || is_block || there == nullptr || !there->is_mapping()) {
      whole.set(section.key, section.value);
      continue;
    }
    for (const Node::Entry& key : section.value.entries()) whole.find(section.key)->set(key.key, key.value);
  }
  const auto& components = registry::Registry::builtin();
  registry::validate_recipe(whole, components, diagnostics, [&components, &diagnostics](Node& root) {
    resolve::take_sharding_words(root, components, diagnostics);
  });
}

}  // namespace runner::cli
