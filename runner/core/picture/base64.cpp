#include "runner/core/picture/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace runner::core {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 64;

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += at + i > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * i) & 63];
    }
  }
  return text;
}

std::optional<std::string> base64_bytes(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::array<std::uint8_t, 256> values;
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const std::size_t missing = at + 4 == text.size() ? padding : 0;
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint8_t value = i + missing < 4 ? values[static_cast<unsigned char>(text[at + i])] : std::uint8_t{0};
      if (value == kNoDigit) return std::nullopt;
      bits = bits << 6 | value;
    }
    for (std::size_t i = 0; i + missing < 3; ++i) bytes += static_cast<char>(bits >> (16 - 8 * i) & 255);
  }
  return bytes;
}

}  // namespace runner::core
