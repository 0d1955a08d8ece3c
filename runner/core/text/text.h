#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace runner::core {

/// `a, b, c`: the items with `between` between them, integers in decimal; `text_of` makes something else of each.
template <typename Items, typename TextOf = std::identity>
std::string joined(const Items& items, std::string_view between = ", ", const TextOf& text_of = {}) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += between;
    const auto& shown = std::invoke(text_of, item);
    if constexpr (std::is_integral_v<std::decay_t<decltype(shown)>>) {
      text += std::to_string(shown);
    } else {
      text += shown;
    }
  }
  return text;
}

/// `a, b and 4 more`: the first `limit` items, joined, and the number of the others.
template <typename Items, typename TextOf = std::identity>
std::string joined_first(const Items& items, std::size_t limit, std::string_view between = ", ",
                         const TextOf& text_of = {}) {
  const std::size_t shown = std::min(items.size(), limit);
  std::string text = joined(std::span(items).first(shown), between, text_of);
  if (shown < items.size()) text += " and " + std::to_string(items.size() - shown) + " more";
  return text;
}

/// `"text"` as it is; quote() of utf8.h escapes what a terminal must not see and cuts what is long.
std::string in_quotes(std::string_view text);

/// ASCII letters only; other characters stay.
std::string lower(std::string_view text);
std::string upper(std::string_view text);

/// Without the characters of `blanks` at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");

/// `0.125`, `1e-05`, `nan`: at most `digits` significant digits, as `%g` has it.
std::string short_number(double value, int digits);
/// The shortest text that reads back as the same number: `0.1`, `1e+30`, `nan`, `-inf`.
std::string number_text(double value);

/// `1 step`, `2 steps`.
std::string counted(std::int64_t count, std::string_view one, std::string_view many);
/// `1 file`, `8,714 files`: for counts that get large.
std::string counted_large(std::int64_t count, std::string_view one, std::string_view many);
/// `8,714`.
std::string with_commas(std::int64_t count);

/// A field of a CSV file (RFC 4180): in quotes when it holds the separator, a quote or a line break.
std::string csv_field(std::string_view text, char separator = ',');

}  // namespace runner::core
