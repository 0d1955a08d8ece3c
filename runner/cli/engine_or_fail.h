#pragma once

#include "runner/cli/session.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// The engine; null when it cannot be loaded, which fails the session (exit code 1).
engine::Engine* engine_or_fail(Session& session);

}  // namespace runner::cli
