#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::cli {

/// Whether a parsed file has arguments of Transformers' Trainer, or of LLaMA-Factory, which hands them on.
bool is_trainer(const core::Node& config);

/// The arguments of a command line such as `torchrun run_clm.py --model_name_or_path gpt2 --bf16`, which may go over
/// lines that end with a backslash. What stands before the first `--` behind a `.py` is left out. Nothing if the text
/// is no such line.
std::optional<core::Node> read_command_line(const std::shared_ptr<const core::Source>& source,
                                            core::Diagnostics& diagnostics);

/// The recipe equivalent to arguments of Transformers' Trainer, those that its example scripts and TRL's SFT and DPO
/// scripts add, and LLaMA-Factory's; of arguments without a model, sections of one. Defaults are those of the Trainer
/// where they differ from roux's. Errors and warnings as recipe_of_axolotl().
core::Node recipe_of_trainer(const core::Node& config, core::Diagnostics& diagnostics);

}  // namespace runner::cli
