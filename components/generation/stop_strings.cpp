#include "components/generation/stop_strings.h"

#include <algorithm>
#include <utility>

namespace components::generation {
namespace {

/// Bytes that a character has by its first one; 1 for what begins none.
std::size_t length_by_first_byte(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  return byte >= 0xF0 && byte <= 0xF4 ? 4 : 1;
}

/// Bytes of a character at the end of the text that is not whole.
std::size_t begun_character(std::string_view text) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(3, text.size()); ++length) {
    const auto byte = static_cast<unsigned char>(text[text.size() - length]);
    if ((byte & 0xC0U) != 0x80U) return length_by_first_byte(byte) > length ? length : 0;
  }
  return 0;
}

/// Bytes at the end of the text that a stop begins with.
std::size_t begun_stop(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopStrings::feed(std::string_view piece) {
  if (stopped_) return "";
  held_ += piece;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t found = held_.find(stop);
    if (found != std::string::npos) end = std::min(end, found + stop.size());
  }
  stopped_ = end != std::string::npos;
  std::string shown = held_.substr(0, stopped_ ? end : held_.size() - unsure());
  held_.erase(0, stopped_ ? held_.size() : shown.size());
  return shown;
}

std::size_t StopStrings::unsure() const {
  std::size_t bytes = begun_character(held_);
  for (const std::string& stop : stops_) bytes = std::max(bytes, begun_stop(held_, stop));
  return bytes;
}

std::string StopStrings::finish() {
  const std::size_t begun = begun_character(held_);
  std::string shown = held_.substr(0, held_.size() - begun) + (begun > 0 ? "\xEF\xBF\xBD" : "");
  held_.clear();
  return shown;
}

}  // namespace components::generation
