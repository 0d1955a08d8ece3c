#pragma once

#include <string>
#include <vector>

namespace runner::cli {

/// The whole program: reads the command line, runs one command, returns the exit status (DESIGN section 1). Never
/// throws.
int run_program(const std::vector<std::string>& command_line);

}  // namespace runner::cli
