#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// Completions of the last of `words`, which is the command line after `roux` up to the cursor; its last word may be
/// empty. Commands, flags, runs, metrics, keys of recipes, components; none where only files fit, which the shell
/// completes.
std::vector<std::string> completions(const CLI::App& app, const Session& session,
                                     const std::vector<std::string>& words);

}  // namespace runner::cli
