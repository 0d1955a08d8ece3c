#pragma once

#include <cstdint>
#include <string_view>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::core {

/// Limits of a reader.
struct JsonLimits {
  int depth_max = 256;
  std::int64_t values_max = 5'000'000;
};

/// JSON that a program wrote (a file of a checkpoint, a row of a run) into a tree without locations; recipes are read
/// by recipe::read_json. Refused, with the reason: invalid JSON or UTF-8, a duplicate key, an integer beyond 64 bits,
/// anything beyond the limits.
Result<Node> parse_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace runner::core
