#pragma once

#include <optional>
#include <string>

#include "runner/cli/session.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

// Shared by the subcommands of `roux config`.

namespace runner::cli {

/// The launch file of this machine; nothing when the session has failed.
std::optional<std::string> path_to_write(Session& session);
/// The same, but fails when the file exists and `force` is not given.
std::optional<std::string> path_of_new(Session& session, bool force);
/// Writes a file and prints its path. False when the session has failed.
bool write_config(Session& session, const std::string& path, const std::string& text);
/// Checks sections as those of a recipe, at their own locations.
void check_sections(const core::Node& sections, core::Diagnostics& diagnostics);

}  // namespace runner::cli
