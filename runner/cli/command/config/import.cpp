#include <cstdio>
#include <memory>

#include "runner/cli/flags.h"
#include "runner/cli/group/accelerate_import.h"
#include "runner/cli/group/axolotl_import.h"
#include "runner/cli/group/config.h"
#include "runner/cli/launch_config.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/recipe/read.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

using core::Node;

void import(Session& session, const std::string& file, const std::string& output) {
  core::Diagnostics diagnostics;
  const recipe::Limits limits;
  auto text = core::read_file(file, limits.file_bytes_max);
  if (!text) return session.fail(text.failure().message, text.failure().hint);
  const auto source =
      std::make_shared<const core::Source>(core::Source{file, std::move(text).value(), core::Source::Kind::kFile});
  const auto config = recipe::read_yaml(source, limits, diagnostics);
  std::string sections, use = "use it in a recipe with extends: [this file]";
  if (config && config->is_mapping()) {
    const bool whole = is_axolotl(*config);
    const Node recipe = whole ? recipe_of_axolotl(*config, diagnostics) : recipe_of_accelerate(*config, diagnostics);
    if (whole) use = "check it with `roux plan`";
    if (!whole || !diagnostics.has_errors()) check_sections(recipe, diagnostics);
    for (const Node::Entry& section : recipe.entries()) sections += section_text(section.key, section.value);
  } else if (config) {
    diagnostics.error(config->location(), "not a config file of Accelerate or Axolotl: must be a mapping");
  }
  diagnostics.sort();
  session.show(diagnostics);
  if (diagnostics.has_errors()) return void(session.exit_code = core::kExitUsage);
  if (output.empty()) return void(std::fputs(sections.c_str(), stdout));
  if (sections.empty()) sections = "{}\n";  // a recipe that extends a file without a value would be refused
  write_config(session, output, "# From " + file + "; " + use + "\n" + sections);
}

}  // namespace

void add_config_import(Command group, Session& session) {
  struct Files {
    std::string from, to;
  };
  auto files = std::make_shared<Files>();
  Command command = group.add_subcommand(
      "import", "Convert a config file of Accelerate to sections of a recipe, or of Axolotl to a recipe");
  command.add_option("FILE", files->from, "File that `accelerate config` wrote, or YAML file of Axolotl").required();
  add_output(command, files->to, "File to write; standard output by default");
  command.footer(
      "\nExamples:\n  roux config import ~/.cache/huggingface/accelerate/default_config.yaml -o machines.yaml\n"
      "  roux config import lora.yml -o recipe.yaml");
  command.callback(
      [&session, files] { session.command = [&session, files] { import(session, files->from, files->to); }; });
}

}  // namespace runner::cli
