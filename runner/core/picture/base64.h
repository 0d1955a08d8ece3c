#pragma once

#include <string>
#include <string_view>

namespace runner::core {

/// RFC 4648, padded, in one line.
std::string base64(std::string_view bytes);

}  // namespace runner::core
