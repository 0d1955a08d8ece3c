#pragma once

#include <string_view>

namespace components::tokenizer {

/// Without the white space at both ends, as Python's `str.strip` and Jinja's `trim` have it.
std::string_view without_white_space(std::string_view text);
/// At the beginning alone, as `str.lstrip`.
std::string_view without_leading_space(std::string_view text);
/// At the end alone, as `str.rstrip`.
std::string_view without_trailing_space(std::string_view text);

}  // namespace components::tokenizer
