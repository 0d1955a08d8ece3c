#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What is asked of characters. Properties come from utf8proc and from fixed lists of the Unicode standard, never from
// the locale.

namespace components::tokenizer {

struct CodePoint {
  char32_t value;
  unsigned length;  ///< bytes
};

/// The code point at `at`; the text has to be valid UTF-8.
inline CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1Fu) << 6 | (byte(1) & 0x3Fu), 2};
  if (first < 0xF0) return {(first & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu), 3};
  return {(first & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu), 4};
}

/// Bytes of a code point, by its first byte.
inline unsigned utf8_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void append_utf8(std::string& text, char32_t value);

/// Valid UTF-8 in lower case, as Python's str.lower() but that a sigma has one form.
std::string lower_case(std::string_view text);

/// Code points of valid UTF-8.
std::vector<char32_t> code_points(std::string_view text);

/// Valid UTF-8 of any bytes: each maximal part that begins a character and does not end it becomes U+FFFD, and each
/// other wrong byte, as the Unicode standard recommends (3.9) and Python's and Rust's decoders do.
std::string with_replacements(std::string_view bytes);

/// What a character is; several of these.
enum CharClass : std::uint8_t {
  kLetter = 1,        ///< general category L
  kNumber = 2,        ///< general category N
  kSpace = 4,         ///< White_Space
  kWord = 8,          ///< `\w` of UTS 18: letters, marks, decimal digits, connectors, joiners, ...
  kPunctuation = 16,  ///< general category P, or punctuation of ASCII
};

/// The classes of all characters, from utf8proc's Unicode (15).
class CharTable {
 public:
  std::uint8_t operator[](char32_t value) const { return blocks_[index_[value >> 8]][value & 0xFF]; }
  bool is(char32_t value, CharClass wanted) const { return ((*this)[value] & wanted) != 0; }

 private:
  friend const CharTable& char_table();
  CharTable();

  using Block = std::array<std::uint8_t, 256>;
  std::array<std::uint16_t, 0x1100> index_{};
  std::vector<Block> blocks_;
};

/// Made at the first call.
const CharTable& char_table();

}  // namespace components::tokenizer
