#pragma once

#include <string>
#include <string_view>

namespace trackers {

/// A name as a file name: the name itself if portable, else its portable characters with a checksum, so that two names
/// never share a file. At most 80 bytes.
std::string safe_name(std::string_view name);

}  // namespace trackers
