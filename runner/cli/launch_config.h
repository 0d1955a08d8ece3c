#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::cli {

// The file with what this machine says about `launch` where a recipe says nothing: `roux config`. It holds nothing
// else, so that no figure of a training depends on whose machine it ran on.

/// ROUX_CONFIG_FILE (empty: there is none), else XDG_CONFIG_HOME/roux/launch.yaml, else ~/.config/roux/launch.yaml.
std::string config_path();

/// The path where there is such a file; "" where there is none. What it holds beside `launch` is told.
std::string config_in_use(core::Diagnostics& diagnostics);

/// The `launch` mapping of a file; empty where the file is missing. Failure when it cannot be read, or holds more.
core::Result<core::Node> read_launch_config(const std::string& path);

/// The file with these values; each key that is not among them stands in a comment, with its default.
std::string launch_config_text(const core::Node& launch);

}  // namespace runner::cli
