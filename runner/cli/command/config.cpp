
#include "runner/cli/commands.h"

namespace runner::cli {

void add_config(Command app, Session& session) {
  Command command =
      app.add_subcommand("config", "Manage this machine's defaults of launch, device, precision, parallelism");
  command.footer(
      "\nThe file is ROUX_CONFIG_FILE, by default ~/.config/roux/launch.yaml. Flags override the environment "
      "(ROUX_LAUNCH_NUM_PROCESSES=2), which overrides the recipe, which overrides the file.");
  add_config_commands(command, session);
}

}  // namespace runner::cli
