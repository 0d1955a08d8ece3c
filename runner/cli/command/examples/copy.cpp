#include <cstdio>
#include <filesystem>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/group/examples.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFileBytesMax = 64 << 20;
constexpr std::string_view kSchemaLine = "# yaml-language-server: $schema=";

/// A recipe names the editors' schema by its place in the tree; the copy names the one that is installed.
std::string with_installed_schema(std::string text, const fs::path& from) {
  const fs::path schema = from.parent_path() / "schemas" / "recipe.schema.json";
  std::error_code ignored;
  if (!text.starts_with(kSchemaLine) || !fs::exists(schema, ignored)) return text;
  const std::size_t end = std::min(text.find('\n'), text.size());
  return std::string(kSchemaLine) + schema.string() + text.substr(end);
}

core::Result<void> copy_file(const fs::path& from, const std::string& file, const fs::path& to) {
  const auto text = core::read_file((from / file).string(), kFileBytesMax);
  if (!text) return text.failure();
  const fs::path target = to / file;
  if (const auto made = core::make_folders(target.parent_path().string()); !made) return made.failure();
  return core::write_file_atomic(target.string(), with_installed_schema(text.value(), from));
}

void copy_examples(Session& session, const std::string& folder) {
  const auto from = examples_or_fail(session);
  if (!from) return;
  const fs::path to = (fs::path(folder) / "recipes").lexically_normal();
  const std::vector<std::string> files = files_below(*from);
  for (const std::string& file : files) {
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(to / file, ignored))) continue;
    return session.fail((to / file).string() + " exists",
                        "name another folder: `roux examples copy FOLDER` creates FOLDER/recipes");
  }
  for (const std::string& file : files) {
    if (const auto copied = copy_file(*from, file, to); !copied) {
      return session.fail(copied.failure().message, copied.failure().hint, copied.failure().exit_code);
    }
  }
  if (session.quiet) return;
  std::printf("copied %s to %s\n", core::counted(static_cast<std::int64_t>(files.size()), "file", "files").c_str(),
              to.string().c_str());
  std::printf("next: `roux run recipes/quickstart.yaml`%s\n", folder == "." ? "" : (" in " + folder).c_str());
}

}  // namespace

void add_examples_copy(Command group, Session& session) {
  const auto folder = std::make_shared<std::string>(".");
  Command command =
      group.add_subcommand("copy", "Copy the recipes that come with roux, and their data, to edit and run");
  command.add_option("FOLDER", *folder, "Folder that gets the folder recipes; by default the current one");
  command.footer(
      "\nNothing is overwritten.\n"
      "\nExamples:\n"
      "  roux examples copy\n"
      "  roux examples copy ~/experiments\n");
  command.callback([&session, folder] { session.command = [&session, folder] { copy_examples(session, *folder); }; });
}

}  // namespace runner::cli
