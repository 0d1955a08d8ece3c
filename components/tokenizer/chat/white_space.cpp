#include "components/tokenizer/chat/white_space.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace components::tokenizer {
namespace {

/// Every character for which Python's `str.isspace` holds, in UTF-8.
constexpr std::string_view kSpaces[] = {"\t",           "\n",           "\v",           "\f",           "\r",
                                        "\x1c",         "\x1d",         "\x1e",         "\x1f",         " ",
                                        "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
                                        "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
                                        "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
                                        "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};

/// Bytes of the white space that `matches` finds; 0: none.
template <typename Matches>
std::size_t space(Matches matches) {
  const auto* const found = std::find_if(std::begin(kSpaces), std::end(kSpaces), matches);
  return found != std::end(kSpaces) ? found->size() : 0;
}

}  // namespace

std::string_view without_white_space(std::string_view text) {
  return without_trailing_space(without_leading_space(text));
}

std::string_view without_leading_space(std::string_view text) {
  const auto begins = [&](std::string_view white) { return text.starts_with(white); };
  while (const std::size_t bytes = space(begins)) text.remove_prefix(bytes);
  return text;
}

std::string_view without_trailing_space(std::string_view text) {
  const auto ends = [&](std::string_view white) { return text.ends_with(white); };
  while (const std::size_t bytes = space(ends)) text.remove_suffix(bytes);
  return text;
}

}  // namespace components::tokenizer
