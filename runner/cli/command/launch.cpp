#include <cstdio>
#include <memory>
#include <string>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/cli/launch_ranks.h"
#include "runner/cli/train_recipe.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

void add_launch(Command app, Session& session) {
  auto flags = std::make_shared<RunFlags>();
  auto emit = std::make_shared<std::string>();
  Command command = app.add_subcommand("launch", "Same as run; --emit prints a batch script instead");
  add_run_flags(command, *flags);
  Option scheduler =
      command.add_option("--emit", *emit, "Print a script for this scheduler instead of training: slurm");
  accept_only(scheduler.type_name("SCHEDULER"), {"slurm"});
  command.footer(
      "\nExamples:\n"
      "  roux launch --emit slurm recipe.yaml --num-machines 2 --num-processes 8 --time-limit 23h > job.sh\n"
      "  sbatch job.sh\n"
      "  roux launch --num-processes 2 recipe.yaml");
  command.callback([&session, flags, emit] {
    session.command = [&session, flags, emit] {
      if (emit->empty()) return run(session, *flags);
      const auto recipe = session.load(flags->recipe);
      if (!recipe) return;
      if (const auto script = slurm_batch(session, *recipe)) std::fputs(script->c_str(), stdout);
    };
  });
}

}  // namespace runner::cli
