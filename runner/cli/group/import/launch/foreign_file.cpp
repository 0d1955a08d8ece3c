#include "runner/cli/group/import/launch/foreign_file.h"

#include <string>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/recipe/read.h"
#include "runner/registry/wording.h"
#include "runner/resolve/sharding/words.h"

namespace runner::cli {

using core::Node;

std::optional<Node> read_foreign(const std::shared_ptr<const core::Source>& source, core::Diagnostics& diagnostics) {
  recipe::Limits limits;
  limits.yaml_1_1 = true;
  return recipe::read_yaml(source, limits, diagnostics);
}

std::optional<Node> read_named_file(const Node& path, const std::string& argument, core::Diagnostics& diagnostics) {
  const recipe::Limits limits;
  const std::string name = resolve::path_beside(path);
  auto text = core::read_file(name, limits.file_bytes_max);
  if (!text) {
    diagnostics.error(path.location(), argument + ": " + text.failure().message,
                      "put the file there, or beside the script that names it");
    return std::nullopt;
  }
  const auto file =
      std::make_shared<const core::Source>(core::Source{name, std::move(text).value(), core::Source::Kind::kFile});
  auto config = read_foreign(file, diagnostics);
  if (!config || config->is_mapping()) return config;
  diagnostics.error(config->location(), name + " must be a mapping, got " + registry::described(*config),
                    "write KEY: VALUE in each line");
  return std::nullopt;
}

}  // namespace runner::cli
