#pragma once

#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/words/reader.h"

namespace runner::cli {

/// Whether a parsed file has arguments of Transformers' Trainer, or of LLaMA-Factory, which hands them on.
bool is_trainer(const core::Node& config);

/// The recipe equivalent to arguments of Transformers' Trainer, those that its example scripts and TRL's SFT and DPO
/// scripts add, and LLaMA-Factory's, by the tables of schemas/words; of arguments without a model, sections of one.
/// Defaults are those of the program where they differ from roux's. Rows, errors and warnings as recipe_of_axolotl().
core::Node recipe_of_trainer(const core::Node& config, std::vector<words::Row>& rows, core::Diagnostics& diagnostics);

}  // namespace runner::cli
