#pragma once

#include <bit>
#include <cstdint>

namespace runner::train {

/// Bytes that the CPU's allocator, jemalloc, holds for a tensor of `bytes`: it has four sizes between a power of two
/// and the next, so that it may be a quarter more.
inline std::int64_t tensor_memory_of(std::int64_t bytes) {
  constexpr std::int64_t kSmall = 16 << 10;  // below, what is lost does not count
  if (bytes <= kSmall) return bytes;
  const std::int64_t step = std::int64_t{1} << (std::bit_width(static_cast<std::uint64_t>(bytes - 1)) - 3);
  return (bytes + step - 1) / step * step;
}

}  // namespace runner::train
