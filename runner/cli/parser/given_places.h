#pragma once

namespace CLI {
class App;
}

namespace runner::cli {

/// Errors  RunError (exit status 2): a run, file or folder of the command line is "", as a variable of the shell gives
/// that is not set; a file to write would lie in a checkpoint.
void check_given_places(const CLI::App& app);

}  // namespace runner::cli
