#pragma once

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::cli {

/// Whether a parsed file is a configuration of Axolotl: it names a base model.
bool is_axolotl(const core::Node& config);

/// The recipe equivalent to a configuration of Axolotl for supervised fine-tuning, whole or with LoRA. Defaults are
/// those of Axolotl and of Transformers' Trainer where they differ from roux's. Keys that change nothing here are left
/// out. Errors: an unknown key, and one that changes the results and has no equivalent. Warnings: what the user has to
/// add.
core::Node recipe_of_axolotl(const core::Node& config, core::Diagnostics& diagnostics);

}  // namespace runner::cli
