#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::cli {

// The launch file: per-machine defaults of the section `launch`, managed by `roux config`. It holds nothing else, so
// that results do not depend on the machine.

/// ROUX_CONFIG_FILE (empty: no file), else XDG_CONFIG_HOME/roux/launch.yaml, else ~/.config/roux/launch.yaml.
std::string config_path();

/// The path if the file exists and has values, otherwise "". Reports keys other than `launch`.
std::string config_in_use(core::Diagnostics& diagnostics);

/// The `launch` mapping of a file; empty if there is no file. Failure when it cannot be read or has other keys.
core::Result<core::Node> read_launch_config(const std::string& path);

/// The text of the file with these values; all other keys are comments with their defaults.
std::string launch_config_text(const core::Node& launch);

}  // namespace runner::cli
