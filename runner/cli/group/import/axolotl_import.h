#pragma once

#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/words/reader.h"

namespace runner::cli {

/// Whether a parsed file is a configuration of Axolotl, or of a machine that it rents.
bool is_axolotl(const core::Node& config);

/// The recipe equivalent to a configuration of Axolotl, by schemas/words/axolotl.json; defaults are those of Axolotl
/// and of Transformers' Trainer where they differ from roux's. `rows` gets what became of each key. Errors: an unknown
/// key, and one that changes the results and has no equivalent. Warnings: what the user has to add.
core::Node recipe_of_axolotl(const core::Node& config, std::vector<words::Row>& rows, core::Diagnostics& diagnostics);

}  // namespace runner::cli
