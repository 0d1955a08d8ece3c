#pragma once

#include "runner/cli/session.h"

namespace runner::cli {

/// `roux checkpoints diff A B`, below the group `checkpoints`.
void add_checkpoints_diff(CLI::App& group, Session& session);

}  // namespace runner::cli
