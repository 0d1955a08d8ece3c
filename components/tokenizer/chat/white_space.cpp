#include "components/tokenizer/chat/white_space.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace components::tokenizer {
namespace {

using std::string_view_literals::operator""sv;

/// Every character for which Python's `str.isspace` holds, in UTF-8.
constexpr std::string_view kSpaces[] = {
    "\t"sv,           "\n"sv,           "\v"sv,           "\f"sv,           "\r"sv,
    "\x1c"sv,         "\x1d"sv,         "\x1e"sv,         "\x1f"sv,         " "sv,
    "\xc2\x85"sv,     "\xc2\xa0"sv,     "\xe1\x9a\x80"sv, "\xe2\x80\x80"sv, "\xe2\x80\x81"sv,
    "\xe2\x80\x82"sv, "\xe2\x80\x83"sv, "\xe2\x80\x84"sv, "\xe2\x80\x85"sv, "\xe2\x80\x86"sv,
    "\xe2\x80\x87"sv, "\xe2\x80\x88"sv, "\xe2\x80\x89"sv, "\xe2\x80\x8a"sv, "\xe2\x80\xa8"sv,
    "\xe2\x80\xa9"sv, "\xe2\x80\xaf"sv, "\xe2\x81\x9f"sv, "\xe3\x80\x80"sv};

/// Bytes of the white space that `matches` finds; 0: none.
template <typename Matches>
std::size_t space(Matches matches) {
  const auto* const found = std::find_if(std::begin(kSpaces), std::end(kSpaces), matches);
  return found != std::end(kSpaces) ? found->size() : 0;
}

}  // namespace

std::string_view without_white_space(std::string_view text) {
  const auto begins = [&](std::string_view white) { return text.starts_with(white); };
  const auto ends = [&](std::string_view white) { return text.ends_with(white); };
  while (const std::size_t bytes = space(begins)) text.remove_prefix(bytes);
  while (const std::size_t bytes = space(ends)) text.remove_suffix(bytes);
  return text;
}

}  // namespace components::tokenizer
