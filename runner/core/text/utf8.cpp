#include "runner/core/text/utf8.h"

#include <algorithm>
#include <cstdio>

namespace runner::core {
namespace {

std::string hex_byte(unsigned char byte) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "\\x%02x", byte);
  return buffer;
}

std::size_t columns_of(std::string_view code_point) {
  if (code_point.size() < 2) return code_point.size();
  char32_t c = static_cast<unsigned char>(code_point[0]);
  c &= code_point.size() == 2 ? 0x1F : code_point.size() == 3 ? 0x0F : 0x07;
  for (std::size_t i = 1; i < code_point.size(); ++i) c = (c << 6) | (static_cast<unsigned char>(code_point[i]) & 0x3F);
  const bool joins = (c >= 0x300 && c <= 0x36F) || (c >= 0x200B && c <= 0x200D) || (c >= 0x20D0 && c <= 0x20FF) ||
                     c == 0xFEFF || (c >= 0xFE00 && c <= 0xFE0F);
  if (joins) return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
                    (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

/// Code points that make a terminal or a browser show the text around them in another order (U+061C, U+200E, U+200F,
/// U+202A to U+202E, U+2066 to U+2069), and the two that end a line (U+2028, U+2029). Letters that are read from right
/// to left are none of them.
bool reorders(std::string_view text, std::size_t at, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (length == 2) return byte(0) == 0xD8 && byte(1) == 0x9C;
  if (length != 3 || byte(0) != 0xE2) return false;
  if (byte(1) == 0x80) return byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE);
  return byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;
}

/// U+0080..U+009F are control characters too: some terminals obey them.
bool is_second_control(std::string_view text, std::size_t at, std::size_t length) {
  return length == 2 && static_cast<unsigned char>(text[at]) == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

/// The code point at `at` as a terminal may have it. A blank for a tab is the caller's.
void append_safe(std::string_view text, std::size_t at, std::size_t length, std::string& out) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (length == 0 || byte < 0x20 || byte == 0x7F) {
    out += hex_byte(byte);
  } else if (is_second_control(text, at, length) || reorders(text, at, length)) {
    for (std::size_t i = 0; i < length; ++i) out += hex_byte(static_cast<unsigned char>(text[at + i]));
  } else {
    out.append(text, at, length);
  }
}

/// A code point of two or three bytes as JSON's `\uNNNN`.
void append_escaped(std::string_view text, std::size_t at, std::size_t length, std::string& out) {
  unsigned code = static_cast<unsigned char>(text[at]) & (length == 2 ? 0x1FU : 0x0FU);
  for (std::size_t i = 1; i < length; ++i) code = (code << 6U) | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "\\u%04x", code);
  out += buffer;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(at);
  if (at >= text.size()) return 0;
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return follows(at + 1) ? 2 : 0;
  if (first < 0xF0) {
    if (!follows(at + 1) || !follows(at + 2)) return 0;
    if (first == 0xE0 && byte(at + 1) < 0xA0) return 0;
    if (first == 0xED && byte(at + 1) > 0x9F) return 0;
    return 3;
  }
  if (first > 0xF4 || !follows(at + 1) || !follows(at + 2) || !follows(at + 3)) return 0;
  if (first == 0xF0 && byte(at + 1) < 0x90) return 0;
  if (first == 0xF4 && byte(at + 1) > 0x8F) return 0;
  return 4;
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += std::max<std::size_t>(utf8_length(text, at), 1);
  return count;
}

std::size_t terminal_columns(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text, at), 1);
    columns += columns_of(text.substr(at, length));
    at += length;
  }
  return columns;
}

std::string_view first_columns(std::string_view text, std::size_t columns_max) {
  std::size_t at = 0;
  for (std::size_t columns = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text, at), 1);
    columns += columns_of(text.substr(at, length));
    if (columns > columns_max) break;
    at += length;
  }
  return text.substr(0, at);
}

std::string escape_for_terminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (text[at] == '\t') {
      out += ' ';
    } else {
      append_safe(text, at, length, out);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (text[at] == '\t') {
      out += "    ";
    } else if (text[at] == '\n') {
      out += '\n';
    } else {
      append_safe(text, at, length, out);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string json_quote(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; };
  std::string out = "\"";
  out.reserve(text.size() + 2);
  if (std::all_of(text.begin(), text.end(), is_plain)) return out.append(text).append("\"");  // nearly always
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const char c = text[at];
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (is_second_control(text, at, length) || reorders(text, at, length)) {
      append_escaped(text, at, length, out);
    } else if (length > 1) {
      out.append(text, at, length);
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
      out += buffer;
    } else {
      out += c;
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out + "\"";
}

std::string quote(std::string_view text, std::size_t code_points_max) {
  std::size_t at = 0;
  for (std::size_t count = 0; at < text.size() && count < code_points_max; ++count) {
    at += std::max<std::size_t>(utf8_length(text, at), 1);
  }
  const bool cut = at < text.size();
  return "\"" + escape_for_terminal(text.substr(0, at)) + (cut ? "..." : "") + "\"";
}

}  // namespace runner::core
