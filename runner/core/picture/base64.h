#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace runner::core {

/// RFC 4648, padded, in one line.
std::string base64(std::string_view bytes);

/// The bytes of such a text; nothing for another one.
std::optional<std::string> base64_bytes(std::string_view text);

}  // namespace runner::core
