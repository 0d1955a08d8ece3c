#include "trackers/io/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace trackers {
namespace {

using Table = std::array<std::uint32_t, 256>;

// Castagnoli's polynomial, reflected; zlib has the other one only.
constexpr Table kTable = [] {
  Table table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
    table[i] = crc;
  }
  return table;
}();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t crc, std::string_view bytes) {
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    crc = static_cast<std::uint32_t>(__builtin_ia32_crc32di(crc, word));
    bytes.remove_prefix(8);
  }
  for (const char c : bytes) crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(c));
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~by_instruction(~0U, bytes);
#endif
  std::uint32_t crc = ~0U;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace trackers
