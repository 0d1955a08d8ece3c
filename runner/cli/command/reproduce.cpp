#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/proof/reproduction.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

void add_reproduce(Command app, Session& session) {
  auto flags = std::make_shared<ReproduceFlags>();
  Command command =
      app.add_subcommand("reproduce", "Train a recorded run again, and report the first step that differs");
  command.add_option("RUN", flags->run, "Run: id or a prefix of it, name, folder, or `last`").required();
  command.add_option("--recipe", flags->recipe.path, "Recipe to train instead of the recorded one").type_name("FILE");
  add_override_flags(command, flags->recipe);
  command.footer(
      "\nExamples:\n"
      "  roux reproduce last\n"
      "  roux reproduce quickstart --recipe recipes/quickstart.yaml   effect of editing the recipe\n"
      "  roux reproduce last --set launch.num_cpu_threads_per_process=1\n\n"
      "First lists what differs from the original: values of the recipe, data, threads, CPU, LibTorch, source of\n"
      "roux. Then trains from the start, and compares metrics and tensors bitwise.\n\n"
      "Exit status: 0 identical, 1 different");
  command.callback([&session, flags] { session.command = [&session, flags] { reproduce(session, *flags); }; });
}

}  // namespace runner::cli
