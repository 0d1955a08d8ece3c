#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// The flags of `roux` itself, which may stand before and behind each command.
void add_global_flags(CLI::App& app, Session& session);

/// The whole program: reads the command line, runs one command, returns the exit status (docs/errors.md). Never
/// throws.
int run_program(const std::vector<std::string>& command_line);
/// The same in a process that `host` owns. Knows the commands `run` and `resume`.
int run_program(const std::vector<std::string>& command_line, Host host);
/// The same for `run RECIPE --new --quiet --run-id RUN_ID`, with a recipe that was read before.
int run_recipe(const std::vector<std::string>& command_line, const resolve::Recipe& recipe, const std::string& run_id,
               Host host);

}  // namespace runner::cli
