#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runner/core/json.h"

namespace runner::core {

using TakeEntry = std::function<void(const std::string& key, Node value)>;

/// parse_json() of an object whose entries may be many: each is given to `take` as soon as it is read, and `limits`
/// hold for each. `within` names a member of the object whose entries those are; "" takes the object's own. The result
/// holds the rest. What `take` throws comes out.
Result<Node> parse_json_entries(std::string_view text, std::string_view within, const JsonLimits& limits,
                                const TakeEntry& take);

}  // namespace runner::core
