#include <cstdio>
#include <memory>
#include <string>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/core/platform/files.h"
#include "runner/registry/reference/editor_schema.h"

namespace runner::cli {
namespace {

void schema(const std::string& output, Session& session) {
  const std::string text = registry::editor_schema(registry::Registry::builtin());
  if (output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  const core::Result<void> written = core::write_output(output, text);
  if (!written.ok()) session.fail(written.failure().message, written.failure().hint, core::kExitFailed);
}

}  // namespace

void add_schema(Command app, Session& session) {
  const auto output = std::make_shared<std::string>();
  Command command = app.add_subcommand("schema", "Print the JSON Schema of a recipe, for editors");
  add_output(command, *output, "File to write; standard output by default");
  command.footer(
      "\nExamples:\n"
      "  roux schema --output recipe.schema.json\n"
      "  # then, as the first line of a recipe:\n"
      "  # yaml-language-server: $schema=recipe.schema.json\n");
  command.callback([output, &session] { session.command = [output, &session] { schema(*output, session); }; });
}

}  // namespace runner::cli
