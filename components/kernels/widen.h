#pragma once

#include <cstdint>

namespace components::kernels {

/// Copies `count` unsigned numbers of 16 or 32 bits, wherever they lie, into 64-bit ones. Returns the largest; 0 for
/// none.
std::uint32_t widen_u16(const unsigned char* from, std::int64_t count, std::int64_t* to);
std::uint32_t widen_u32(const unsigned char* from, std::int64_t count, std::int64_t* to);

}  // namespace components::kernels
