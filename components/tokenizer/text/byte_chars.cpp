#include "components/tokenizer/text/byte_chars.h"

#include <array>

#include "components/tokenizer/text/unicode.h"

namespace components::tokenizer {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::size_t kChars = 0x144;  // the others are U+0100 and on

struct Table {
  std::array<char32_t, 256> chars{};
  std::array<std::int16_t, kChars> bytes{};
};

constexpr Table make_table() {
  Table table;
  for (auto& byte : table.bytes) byte = -1;
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    table.chars[byte] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    table.bytes[table.chars[byte]] = static_cast<std::int16_t>(byte);
  }
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

char32_t char_of_byte(std::uint8_t byte) { return kTable.chars[byte]; }

std::optional<std::uint8_t> byte_of_char(char32_t value) {
  if (value >= kChars || kTable.bytes[value] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(kTable.bytes[value]);
}

void append_byte_chars(std::string& text, std::string_view bytes) {
  for (const char byte : bytes) append_utf8(text, char_of_byte(static_cast<std::uint8_t>(byte)));
}

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (std::size_t at = 0; at < token.size();) {
    const CodePoint point = code_point_at(token, at);
    const auto byte = byte_of_char(point.value);
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
    at += point.length;
  }
  return bytes;
}

}  // namespace components::tokenizer
