#pragma once

#include <cstdint>
#include <string_view>

namespace trackers {

/// BLAKE2b (RFC 7693) without a key, with a digest of 8 bytes and a salt whose other half is zero; the digest as a
/// number, its first byte the lowest.
std::uint64_t blake2b(std::string_view bytes, std::uint64_t salt);

}  // namespace trackers
