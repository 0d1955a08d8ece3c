#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// The words that can stand where the last of `words` begins: `words` is the command line after `roux`, up to the
/// cursor, its last word begun or empty. Commands, flags, runs, metrics, keys of recipes, components; none where only
/// the shell's own files fit.
std::vector<std::string> completions(const CLI::App& app, const Session& session,
                                     const std::vector<std::string>& words);

}  // namespace runner::cli
