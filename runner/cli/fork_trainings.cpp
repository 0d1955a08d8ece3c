#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/engine_commands.h"
#include "runner/cli/program.h"
#include "runner/sweep/trainings.h"

namespace runner::cli {

// What a worker of a sweep starts once, so that its trials need not load the engine each. Not for people.
void add_fork_trainings(CLI::App& app, Session& session) {
  auto descriptor = std::make_shared<int>(-1);
  CLI::App* command = app.add_subcommand("fork-trainings", "")->group("");
  command->add_option("descriptor", *descriptor, "")->required();
  command->callback([&session, descriptor] {
    session.command = [&session, descriptor] {
      if (engine_or_fail(session) == nullptr) return;
      sweep::serve_trainings(*descriptor, [&session](const std::vector<std::string>& words) {
        std::vector<std::string> command_line = {session.command_line.front()};
        command_line.insert(command_line.end(), words.begin(), words.end());
        return run_program(command_line);
      });
    };
  });
}

}  // namespace runner::cli
