#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// The whole program: reads the command line, runs one command, returns the exit status (docs/errors.md). Never
/// throws.
int run_program(const std::vector<std::string>& command_line);
/// The same where the process is somebody else's; of the commands there are `run` and `resume`.
int run_program(const std::vector<std::string>& command_line, Host host);
/// The same of `run RECIPE --new --quiet --run-id RUN_ID`, where `recipe` is what it would read.
int run_recipe(const std::vector<std::string>& command_line, const resolve::Recipe& recipe, const std::string& run_id,
               Host host);

}  // namespace runner::cli
