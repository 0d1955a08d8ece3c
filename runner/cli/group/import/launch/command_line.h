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
/// command that trains counts, else the first with a Python script and arguments; a file of arguments that it names is
/// read, and its options go before. Nothing if the text has no such line; an error for two trainings, for a variable
/// that the script does not set, and for `--config` of a script whose files are its own.
std::optional<core::Node> read_command_line(const std::shared_ptr<const core::Source>& source,
                                            core::Diagnostics& diagnostics);

}  // namespace runner::cli
