#include "trackers/io/png.h"

#include <string_view>

#include "runner/core/platform/files.h"
#include "trackers/io/tracker_data.h"

namespace trackers {
namespace {

constexpr std::int64_t kBytesMax = 256'000'000;
// The signature, then the first chunk: its length, "IHDR", width, height, depth, colour type.
constexpr std::string_view kBegin("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
constexpr std::size_t kWidthAt = 16, kHeightAt = 20, kColourAt = 25, kHeaderBytes = 33;

std::int64_t big_endian(const std::string& bytes, std::size_t at) {
  std::int64_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

int channels_of(char colour_type) {
  switch (colour_type) {
    case 0: return 1;
    case 4: return 2;
    case 6: return 4;
    default: return 3;  // colours, or a palette of them
  }
}

}  // namespace

Png read_png(const std::string& path) {
  auto read = runner::core::read_file(path, kBytesMax);
  if (!read) throw TrackerError(TrackerError::Remedy::kReject, read.failure().message, read.failure().hint);
  Png png{std::move(read).value()};
  if (png.bytes.size() < kHeaderBytes || !png.bytes.starts_with(kBegin)) {
    throw TrackerError(TrackerError::Remedy::kReject, path + " is not a PNG file");
  }
  png.width = big_endian(png.bytes, kWidthAt);
  png.height = big_endian(png.bytes, kHeightAt);
  png.channels = channels_of(png.bytes[kColourAt]);
  return png;
}

}  // namespace trackers
