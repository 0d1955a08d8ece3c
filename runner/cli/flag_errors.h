#pragma once

#include "runner/cli/session.h"

namespace CLI {
class ParseError;
}

namespace runner::cli {

/// Fails the session for a command line that the parser refused: one message, and a hint at what was meant.
void refuse(CLI::App& app, const CLI::ParseError& error, Session& session);

}  // namespace runner::cli
