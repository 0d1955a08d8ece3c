#include "runner/core/utf8.h"

#include <algorithm>
#include <cstdio>

namespace runner::core {
namespace {

std::string hex_byte(unsigned char byte) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "\\x%02x", byte);
  return buffer;
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

std::string escape_for_terminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    // U+0080..U+009F are control characters too: some terminals obey them.
    const bool second_controls = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (byte == '\t') {
      out += ' ';
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += hex_byte(byte);
    } else if (second_controls) {
      out += hex_byte(byte) + hex_byte(static_cast<unsigned char>(text[at + 1]));
    } else {
      out.append(text, at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string printable(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      safe += "    ";
    } else if ((byte < 0x20 && c != '\n') || byte == 0x7F) {
      safe.append("\\x") += kHex[byte >> 4];
      safe += kHex[byte & 15];
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const char c = text[at];
    if (length == 0) {
      out += "\xEF\xBF\xBD";
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
