#include "runner/core/json_problem.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "runner/core/text/utf8.h"

namespace runner::core {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

int hex_value(std::string_view digits) {
  int value = 0;
  for (const char c : digits) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return -1;
    value = value * 16 + (std::isdigit(static_cast<unsigned char>(c)) != 0 ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

/// The number behind `\u` at this place; -1 for none.
int escaped_at(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text.substr(at, 2) != "\\u") return -1;
  return hex_value(text.substr(at + 2, 4));
}

bool is_high(int code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low(int code) { return code >= 0xDC00 && code < 0xE000; }

/// Of `\ud83d` without its `\ude00`, or the other way round, before `end`.
bool has_half_of_a_pair(std::string_view text, std::size_t end) {
  for (std::size_t at = 0; at < std::min(end, text.size()); ++at) {
    if (text[at] != '\\') continue;
    const int code = escaped_at(text, at);
    if (is_low(code) || (is_high(code) && !is_low(escaped_at(text, at + 6)))) return true;
    at += is_high(code) ? 11 : 1;
  }
  return false;
}

/// The word that a byte is a part of.
std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t begin = std::min(at, text.size()), end = begin;
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  while (end < text.size() && is_letter(text[end])) ++end;
  return text.substr(begin, end - begin);
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Whether a byte is in a number like `01`.
bool has_leading_zero(std::string_view text, std::size_t at) {
  if (!is_digit(text[at])) return false;
  std::size_t begin = at;
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  const bool begins_number = begin == 0 || text[begin - 1] == '-' || text[begin - 1] == ':' || text[begin - 1] == ',' ||
                             text[begin - 1] == '[' || kBlanks.find(text[begin - 1]) != kBlanks.npos;
  return begin < at && text[begin] == '0' && begins_number;
}

/// Whether a whole list or object lies before this place, and it is in none.
bool follows_value(std::string_view text, std::size_t at) {
  int depth = 0;
  bool in_text = false, any = false;
  for (std::size_t i = 0; i < at; ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
      continue;
    }
    in_text = c == '"';
    if (c == '{' || c == '[') ++depth, any = true;
    if (c == '}' || c == ']') --depth;
  }
  return any && depth == 0 && !in_text;
}

/// Of a byte of a character outside of ASCII, in valid UTF-8. Curly quotes come out of word processors.
bool is_curly_quote(std::string_view text, std::size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) --at;
  return text.substr(at, 2) == "\xE2\x80" && at + 2 < text.size() && static_cast<unsigned char>(text[at + 2]) >= 0x98 &&
         static_cast<unsigned char>(text[at + 2]) <= 0x9F;
}

std::string reason_of(std::string_view text, std::size_t position) {
  constexpr std::array<std::string_view, 4> kNoNumbers = {"NaN", "nan", "Infinity", "inf"};
  constexpr std::array<std::string_view, 3> kPython = {"None", "True", "False"};
  if (text.starts_with("version https://git-lfs")) return "it is a pointer of Git LFS; run `git lfs pull`";
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") || text.substr(0, 4).find('\0') != text.npos) {
    return "it is UTF-16 or another encoding, write UTF-8";
  }
  const std::size_t at = position > 0 ? position - 1 : 0;
  if (at >= text.size()) return "";
  if (has_half_of_a_pair(text, position)) return "half of a surrogate pair, \\uD800 to \\uDFFF";
  const auto byte = static_cast<unsigned char>(text[at]);
  if (find_invalid_utf8(text) <= at) return "it is not UTF-8 there, perhaps Latin-1";
  if (byte >= 0x80 && is_curly_quote(text, at)) return "texts stand in straight double quotes";
  if (follows_value(text, at)) return "more text follows the value";
  if (at > 0 && text[at - 1] == '\\') {
    return "no escape is called \\" + std::string(text.substr(at, std::max<std::size_t>(utf8_length(text, at), 1))) +
           "; a backslash itself is \\\\";
  }
  if (has_leading_zero(text, at)) return "a number has no 0 in front of its digits";
  const std::string_view word = word_at(text, at);
  const auto is_word = [word](std::string_view one) { return word == one; };
  if (std::any_of(kNoNumbers.begin(), kNoNumbers.end(), is_word)) {
    return "JSON has no " + std::string(word) + "; write null";
  }
  if (std::any_of(kPython.begin(), kPython.end(), is_word)) {
    return std::string(word) + " is Python's word, write " +
           (word == "None"   ? "null"
            : word == "True" ? "true"
                             : "false");
  }
  if (byte < 0x20) return "a text holds no line breaks, tabs and other control characters but as \\n, \\t, \\u0000";
  if (text[at] == '/') return "JSON has no comments";
  const bool is_keyword = word == "true" || word == "false" || word == "null";
  if (text[at] == '\'' || (!word.empty() && word.data() != text.data() && !is_keyword))
    return "texts and keys stand in double quotes";
  const std::size_t before = at == 0 ? text.npos : text.find_last_not_of(kBlanks, at - 1);
  const bool follows_comma = before != text.npos && text[before] == ',';
  if (follows_comma && (text[at] == '}' || text[at] == ']')) return "a comma stands before the end of a list or object";
  return "";
}

}  // namespace

std::string json_problem(std::string_view text, std::size_t position) {
  const std::string reason = reason_of(text, position);
  return "is not valid JSON from byte " + std::to_string(position) + " on" + (reason.empty() ? "" : ": " + reason);
}

}  // namespace runner::core
