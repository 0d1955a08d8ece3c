#pragma once

#include <optional>
#include <string_view>

#include "runner/core/node.h"

namespace runner::store {

/// Text that the store or the program wrote itself, without places. Nothing when it is not JSON.
std::optional<core::Node> parse_json(std::string_view text);

}  // namespace runner::store
