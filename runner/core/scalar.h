#pragma once

#include <string>
#include <string_view>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::core {

/// Reads a plain (unquoted) scalar by the YAML 1.2 core schema: `null ~`, `true false`, `12 -3 0o17 0x1F`, `1e-4 .5
/// .inf .nan`; anything else is text. Failure only for a number that fits no type: an integer past 64 bits.
Result<Node> resolve_scalar(std::string_view text);

}  // namespace runner::core
