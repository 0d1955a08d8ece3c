#include <cstdio>

#include "runner/cli/group/import/options_page.h"
#include "runner/cli/session.h"

namespace runner::cli {

void add_config_options(Command group, Session& session) {
  Command command = group.add_subcommand("options", "Print how options of Accelerate translate, as Markdown");
  command.footer("\nExample:\n  roux config options\n");
  command.callback([&session] { session.command = [] { std::fputs(accelerate_page().c_str(), stdout); }; });
}

}  // namespace runner::cli
