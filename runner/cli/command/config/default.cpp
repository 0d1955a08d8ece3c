#include <memory>

#include "runner/cli/group/config.h"
#include "runner/cli/launch_config.h"

namespace runner::cli {
namespace {

void write_default(Session& session, bool force) {
  const auto path = path_of_new(session, force);
  if (path) write_config(session, *path, launch_config_text(core::Node::mapping()));
}

}  // namespace

void add_config_default(Command group, Session& session) {
  Command command = group.add_subcommand("default", "Write the file with every key commented out");
  auto force = std::make_shared<bool>(false);
  command.add_flag("--force", *force, "Replace an existing file");
  command.footer("\nExample:\n  roux config default --force\n");
  command.callback([&session, force] { session.command = [&session, force] { write_default(session, *force); }; });
}

}  // namespace runner::cli
