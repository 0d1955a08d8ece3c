#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/group/run_seeds.h"
#include "runner/cli/train_recipe.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

void add_run(Command app, Session& session) {
  auto flags = std::make_shared<RunFlags>();
  Command command = app.add_subcommand("run", "Check, plan and train a recipe; resumes a run that was stopped");
  add_run_flags(command, *flags);
  command.add_option("--seeds", flags->seeds, "Run once for each of these seeds, and compare the group: 1,2,3")
      .type_name("LIST");
  command.footer(
      "\nExamples:\n"
      "  roux run recipes/quickstart.yaml\n"
      "  roux run recipe.yaml optimizer.lr=1e-4 run_name=low-lr\n"
      "  roux run recipe.yaml --smoke        does everything once, in seconds\n"
      "  roux run recipe.yaml --seeds 1,2,3  three runs, and their mean\n"
      "  roux run recipe.yaml --checkpoint step-000500\n"
      "  roux run recipe.yaml --num-processes 4 --hosts 10.0.0.1,10.0.0.2\n\n"
      "Exit status: 0 done, 1 failed, 2 wrong recipe or flag, 70 bug in roux, 75 stopped and resumable (a signal, a\n"
      "time limit, a full disk), 130 stopped by a second Ctrl-C without saving");
  command.callback([&session, flags] {
    session.command = [&session, flags] { flags->seeds.empty() ? run(session, *flags) : run_seeds(session, *flags); };
  });
}

}  // namespace runner::cli
