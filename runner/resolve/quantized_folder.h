#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// Gives a recipe the `quantization` that the config.json of its `init_from` has. A key of the recipe that says
/// something else is an error: the weights are as they are.
///
/// file  the config.json
void take_quantization(core::Node& recipe, const std::string& file, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
