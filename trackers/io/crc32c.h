#pragma once

#include <cstdint>
#include <string_view>

namespace trackers {

/// CRC-32C (Castagnoli, reflected): crc32c("123456789") is 0xe3069283.
std::uint32_t crc32c(std::string_view bytes);
/// As TFRecord files have it, so that the checksum of bytes with checksums in them says something.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace trackers
