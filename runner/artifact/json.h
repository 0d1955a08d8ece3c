#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::artifact {

/// What a file of a checkpoint may ask of its reader.
struct JsonLimits {
  int depth_max = 64;
  std::int64_t values_max = 5'000'000;
};

/// JSON as files of a checkpoint hold it, into a tree without places. Refused, with the reason: bytes that are no JSON
/// or no UTF-8, a key twice, an integer beyond 64 bits, more than the limits allow.
core::Result<core::Node> parse_json(std::string_view text, const JsonLimits& limits = {});

/// The text with quotes, as JSON writes it.
std::string json_quoted(std::string_view text);

}  // namespace runner::artifact
