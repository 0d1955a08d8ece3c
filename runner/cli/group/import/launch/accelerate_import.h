#pragma once

#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/words/reader.h"

namespace runner::cli {

/// The sections of a recipe equivalent to a config file of Accelerate, or to the flags of `accelerate launch` under
/// their names there. `rows`: what became of each key. Errors: keys and values that Accelerate does not have, and what
/// would change the training; warnings: devices, compilers and machines that roux does not have.
core::Node recipe_of_accelerate(const core::Node& config, std::vector<words::Row>& rows,
                                core::Diagnostics& diagnostics);

}  // namespace runner::cli
