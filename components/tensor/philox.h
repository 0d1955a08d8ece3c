#pragma once

#include <array>
#include <cstdint>

namespace components {

/// Four random words for a counter and a key; Philox4x32-10.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> words, std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{words[0]} * 0xD251'1F53U, b = std::uint64_t{words[2]} * 0xCD9E'8D57U;
    words = {static_cast<std::uint32_t>(b >> 32U) ^ words[1] ^ low, static_cast<std::uint32_t>(b),
             static_cast<std::uint32_t>(a >> 32U) ^ words[3] ^ high, static_cast<std::uint32_t>(a)};
    low += 0x9E37'79B9U;
    high += 0xBB67'AE85U;
  }
  return words;
}

}  // namespace components
