#pragma once

#include <string>

namespace runner::cli {

class Session;

/// Prints what `word` names: a component (`optimizer/adamw`), a section (`training`, `section/training`) or a key of a
/// section (`checkpoint.mode`). A misspelled name is an error of `session`. Returns false and prints nothing when
/// `word` looks like none of them.
bool explain_component(const std::string& word, bool json, Session& session);

}  // namespace runner::cli
