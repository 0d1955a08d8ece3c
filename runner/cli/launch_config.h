#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::cli {

// The launch file: per-machine defaults of `launch`, `device`, `precision` and `parallelism`, managed by `roux config`.
// It holds nothing else: the recipe defines what is trained.

/// ROUX_CONFIG_FILE (empty: no file), else XDG_CONFIG_HOME/roux/launch.yaml, else ~/.config/roux/launch.yaml.
std::string config_path();

/// The path if the file exists and has values, otherwise "". Reports keys other than those.
std::string config_in_use(core::Diagnostics& diagnostics);

/// The keys of a file; none if there is no file. Failure when it cannot be read or has other keys.
core::Result<core::Node> read_launch_config(const std::string& path);

/// The text of the file with these keys; all others are comments with their defaults.
std::string launch_config_text(const core::Node& defaults);

/// `key: value` as a block of lines; a mapping has a line for each entry.
std::string section_text(const std::string& key, const core::Node& value);

}  // namespace runner::cli
