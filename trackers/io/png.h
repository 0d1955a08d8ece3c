#pragma once

#include <cstdint>
#include <string>

namespace trackers {

/// A PNG file with its header.
struct Png {
  std::string bytes;
  std::int64_t width = 0, height = 0;
  int channels = 0;  ///< 1 grey, 2 grey and opacity, 3 colour, 4 colour and opacity
};

/// TrackerError (kReject) when the file cannot be read or is not a PNG.
Png read_png(const std::string& path);

}  // namespace trackers
