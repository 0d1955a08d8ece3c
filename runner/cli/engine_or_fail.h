#pragma once

#include "runner/cli/session.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// The engine, or null after saying why it cannot be loaded (the exit code is 1 then).
engine::Engine* engine_or_fail(Session& session);

}  // namespace runner::cli
