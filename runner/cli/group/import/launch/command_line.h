#pragma once

#include <memory>
#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::cli {

/// Keys for what a command line has beside the script's arguments: the name of the script, or the word behind `trl`;
/// and what read_launcher() found before it.
inline constexpr const char* kScript = "(script)";
inline constexpr const char* kLauncher = "(launcher)";

/// The arguments of a command line such as `torchrun run_clm.py --model_name_or_path gpt2 --bf16`, as people keep it in
/// a shell script: over several lines, with variables that the script sets, with comments, redirections and pipes. The
/// first command with a Python script, `trl` or `llamafactory-cli` counts. Nothing if the text has no such line; an
/// error for a variable that the script does not set, and for arguments that stand in a file of their own.
std::optional<core::Node> read_command_line(const std::shared_ptr<const core::Source>& source,
                                            core::Diagnostics& diagnostics);

}  // namespace runner::cli
