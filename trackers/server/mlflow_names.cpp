#include "trackers/server/mlflow_names.h"

#include <cstdint>
#include <cstdio>

#include "runner/core/text/utf8.h"
#include "trackers/io/crc32c.h"

namespace trackers {
namespace {

using runner::core::utf8_length;

constexpr std::size_t kNameMax = 250;

std::uint32_t code_point(const std::string& text, std::size_t at, std::size_t length) {
  if (length == 1) return static_cast<unsigned char>(text[at]);
  std::uint32_t code = static_cast<unsigned char>(text[at]) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = (code << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  return code;
}

/// MLflow takes what Python's \w matches: letters of all scripts. These are long stretches of it, and no more is
/// needed than that none of them is refused.
bool is_letter(std::uint32_t code) {
  struct Stretch {
    std::uint32_t first, last;
  };
  static constexpr Stretch kStretches[] = {
      {0xC0, 0xD6},     {0xD8, 0xF6},     {0xF8, 0x2C1},    {0x3A3, 0x3F5},   {0x3F7, 0x481},   {0x48A, 0x52F},
      {0x5D0, 0x5EA},   {0x620, 0x64A},   {0x904, 0x939},   {0xE01, 0xE30},   {0x10D0, 0x10FA}, {0x1E00, 0x1F15},
      {0x3041, 0x3096}, {0x30A1, 0x30FA}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3},
  };
  for (const Stretch& stretch : kStretches) {
    if (code >= stretch.first && code <= stretch.last) return true;
  }
  return false;
}

bool fits(std::uint32_t code) {
  if (code >= 0x80) return is_letter(code);
  const auto c = static_cast<char>(code);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string("_-.: /").find(c) != std::string::npos;
}

std::string fitting_letters(const std::string& name) {
  std::string fitting;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t length = utf8_length(name, at);
    if (length > 0 && fits(code_point(name, at, length))) {
      fitting += name.substr(at, length);
    } else {
      fitting += '_';
    }
    at += length > 0 ? length : 1;
  }
  return fitting;
}

/// No part of the path is empty, `.` or `..`.
std::string plain_path(const std::string& path) {
  std::string plain;
  for (std::size_t at = 0;;) {
    const auto end = path.find('/', at);
    const std::string part = path.substr(at, end - at);
    plain += part.empty() || part == "." || part == ".." ? "_" : part;
    if (end == std::string::npos) return plain;
    plain += '/';
    at = end + 1;
  }
}

}  // namespace

std::string cut(const std::string& text, std::size_t characters_max) {
  std::size_t at = 0;
  for (std::size_t count = 0; at < text.size() && count < characters_max; ++count) {
    const std::size_t length = utf8_length(text, at);
    at += length > 0 ? length : 1;
  }
  return text.substr(0, at);
}

std::string mlflow_name(const std::string& name) {
  const std::string fitting = cut(plain_path(fitting_letters(name)), kNameMax);
  if (fitting == name) return name;
  char checksum[10];
  std::snprintf(checksum, sizeof checksum, "_%08x", crc32c(name));
  const std::string begin = cut(fitting, kNameMax - 9);
  return begin + checksum;
}

}  // namespace trackers
