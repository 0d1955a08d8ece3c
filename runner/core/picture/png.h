#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace runner::core {

/// Whole bytes of a PNG file: `rgb` has three bytes a pixel, row by row.
std::string png(const std::vector<std::uint8_t>& rgb, int width, int height);

}  // namespace runner::core
