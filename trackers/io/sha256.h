#pragma once

#include <string>
#include <string_view>

namespace trackers {

/// SHA-256 (FIPS 180-4) as 64 hex digits: of "abc" it is ba7816bf...f20015ad.
std::string sha256(std::string_view bytes);

}  // namespace trackers
