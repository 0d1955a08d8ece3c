#pragma once

namespace runner::cli {

/// The whole program: reads the command line, runs one command, returns the exit status (DESIGN section 1). Never
/// throws.
int run_program(int argc, char** argv);

}  // namespace runner::cli
