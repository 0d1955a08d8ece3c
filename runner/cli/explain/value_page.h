#pragma once

#include <optional>
#include <string>

#include "runner/cli/flags.h"
#include "runner/store/run_reader.h"

namespace runner::cli {

class Session;

/// The run that `word` names, or the run whose folder holds this copy of its recipe (the copy lacks the --set flags
/// that the run was started with).
std::optional<store::RunSummary> run_of(const std::string& word, const Session& session);

/// Prints the value at `path` of the recipe or run that the flags name: where it comes from, what the key accepts.
void explain_value(const RecipeFlags& flags, const std::string& path, bool json, Session& session);

}  // namespace runner::cli
