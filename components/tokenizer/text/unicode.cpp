#include "components/tokenizer/text/unicode.h"

#include <utf8proc.h>

#include <map>

namespace components::tokenizer {
namespace {

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Other_Alphabetic that is neither a mark nor a number: letters in circles and squares.
bool is_enclosed_letter(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
}

std::uint8_t classes_of(char32_t c) {
  std::uint8_t classes = 0;
  const auto add = [&](int wanted) { classes = static_cast<std::uint8_t>(classes | wanted); };
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: add(kLetter | kWord); break;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: add(kWord); break;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL: add(kNumber | kWord); break;
    case UTF8PROC_CATEGORY_NO: add(kNumber); break;
    case UTF8PROC_CATEGORY_PC: add(kPunctuation | kWord); break;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: add(kPunctuation); break;
    default: break;
  }
  if (is_white_space(c)) add(kSpace);
  if (is_ascii_punctuation(c)) add(kPunctuation);
  if (is_enclosed_letter(c) || c == 0x200C || c == 0x200D) add(kWord);
  return classes;
}

}  // namespace

CharTable::CharTable() {
  std::map<Block, std::uint16_t> known;
  const auto number_of = [&](const Block& block) {
    const auto [at, added] = known.try_emplace(block, static_cast<std::uint16_t>(blocks_.size()));
    if (added) blocks_.push_back(block);
    return at->second;
  };
  const std::uint16_t none = number_of(Block{});
  for (std::size_t i = 0; i < index_.size(); ++i) {
    // Planes 4 to 13 are unassigned, 15 and 16 for private use.
    if (i >= 0x400 && i != 0xE00 && i != 0xE01) {
      index_[i] = none;
      continue;
    }
    Block block{};
    for (std::size_t j = 0; j < block.size(); ++j) block[j] = classes_of(static_cast<char32_t>(i << 8 | j));
    index_[i] = number_of(block);
  }
}

const CharTable& char_table() {
  static const CharTable table;
  return table;
}

void append_utf8(std::string& text, char32_t value) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

std::string lower_case(std::string_view text) {
  constexpr char32_t kDottedI = 0x130;  // the one letter that becomes two characters
  std::string lower;
  lower.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    at += point.length;
    if (point.value == kDottedI) {
      lower += "i\u0307";
    } else {
      append_utf8(lower, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point.value))));
    }
  }
  return lower;
}

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> all;
  all.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    all.push_back(point.value);
    at += point.length;
  }
  return all;
}

std::string with_replacements(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
    const unsigned first = byte(0);
    std::size_t wanted = 0;
    unsigned low = 0x80, high = 0xBF;  // of the second byte: no overlong forms, no surrogates, nothing past U+10FFFF
    if (first < 0x80) {
      text += bytes[at++];
      continue;
    }
    if (first >= 0xC2 && first <= 0xDF) wanted = 1;
    if (first >= 0xE0 && first <= 0xEF) wanted = 2;
    if (first >= 0xF0 && first <= 0xF4) wanted = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    std::size_t found = 0;
    while (found < wanted && at + found + 1 < bytes.size()) {
      const unsigned next = byte(found + 1);
      if (next < low || next > high) break;
      low = 0x80;
      high = 0xBF;
      ++found;
    }
    if (wanted > 0 && found == wanted) {
      text += bytes.substr(at, wanted + 1);
    } else {
      text += "\xEF\xBF\xBD";
    }
    at += found + 1;
  }
  return text;
}

}  // namespace components::tokenizer
