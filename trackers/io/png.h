#pragma once

#include <cstdint>
#include <string>

namespace trackers {

/// A PNG file and what its header says.
struct Png {
  std::string bytes;
  std::int64_t width = 0, height = 0;
  int channels = 0;  ///< 1 grey, 2 grey and opacity, 3 colour, 4 colour and opacity
};

/// TrackerError (kLeaveOut) where the file cannot be read or is no PNG.
Png read_png(const std::string& path);

}  // namespace trackers
