#pragma once

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::cli {

/// The chat format that writes a conversation of one turn as Axolotl writes the prompt of a `type` that is a mapping:
/// `{format: "[INST] {instruction} [/INST]", ...}`. Failure: it cannot, and why.
core::Result<core::Node> format_of_prompt(const core::Node& type);

}  // namespace runner::cli
