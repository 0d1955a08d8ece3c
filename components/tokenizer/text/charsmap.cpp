#include "components/tokenizer/text/charsmap.h"

#include <cstring>

#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {

using runner::core::RunError;

Charsmap::Charsmap(std::string_view map, const std::string& place) {
  if (map.empty()) return;
  std::uint32_t size = 0;
  if (map.size() >= sizeof size) std::memcpy(&size, map.data(), sizeof size);
  if (size == 0 || size % 4 != 0 || size > map.size() - sizeof size) {
    throw RunError(place + " is cut short");
  }
  units_.resize(size / 4);
  std::memcpy(units_.data(), map.data() + sizeof size, size);
  texts_ = map.substr(sizeof size + size);
  if (texts_.empty() || texts_.back() != '\0' || runner::core::find_invalid_utf8(texts_) != std::string::npos) {
    throw RunError(place + " has texts that are not UTF-8 or not ended");
  }
}

std::pair<std::size_t, std::string_view> Charsmap::find(std::string_view text, bool longest) const {
  // A unit: 8 bits of label and one that marks a value, or what leads to the next units. (Darts-clone's format.)
  const auto offset = [](std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  std::size_t length = 0;
  std::string_view found;
  if (units_.empty()) return {length, found};
  std::uint32_t at = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || (units_[at] & (1u << 31 | 0xFFu)) != byte) break;
    const bool has_value = (units_[at] >> 8 & 1u) != 0;
    at ^= offset(units_[at]);
    if (!has_value || at >= units_.size()) continue;
    const std::uint32_t value = units_[at] & ~(1u << 31);
    if (value >= texts_.size()) continue;
    // Its texts end with a zero. Not inside a character, so that what is written stays UTF-8.
    if ((static_cast<unsigned char>(texts_[value]) & 0xC0) == 0x80) continue;
    length = i + 1;
    found = std::string_view(texts_).substr(value, texts_.find('\0', value) - value);
    if (!longest) break;
  }
  // A damaged map could end inside a character of the text.
  if (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) return {0, {}};
  return {length, found};
}

}  // namespace components::tokenizer
