#pragma once

#include <string>
#include <string_view>

namespace trackers {

/// A name as the name of a file: the name itself where that can be read on any system, else what of it can be, and a
/// checksum, so that two names never share a file. At most 80 bytes.
std::string safe_name(std::string_view name);

}  // namespace trackers
