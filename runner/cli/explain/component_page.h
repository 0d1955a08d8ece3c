#pragma once

#include <string>

namespace runner::cli {

class Session;

/// Prints what `word` names: a component (`optimizer/adamw`), a section (`training`, `section/training`) or a key of a
/// section (`checkpoint.mode`). A name that is almost one fails in `session`. False, and nothing is said, when `word`
/// looks like none of them.
bool explain_component(const std::string& word, bool json, Session& session);

}  // namespace runner::cli
