#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace runner::core {

/// Length in bytes of the code point at `at`, 0 when the bytes there are no valid UTF-8 (overlong forms, surrogates and
/// code points past U+10FFFF included).
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Offset of the first byte that is not valid UTF-8; npos when all are.
std::size_t find_invalid_utf8(std::string_view text);

/// Code points in `text`; a byte that is not valid UTF-8 counts as one.
std::size_t count_code_points(std::string_view text);

/// Columns that `text` takes on a terminal: two a code point of the wide blocks of East Asia and of emoji, none for one
/// that joins the code point before it.
std::size_t terminal_columns(std::string_view text);
/// The longest prefix of `text` that fits into this many columns; whole code points.
std::string_view first_columns(std::string_view text, std::size_t columns_max);

/// Makes text safe for a terminal: a tab becomes one space; control characters, invalid bytes and what reverses the
/// order of the text around it become `\xNN`.
std::string escape_for_terminal(std::string_view text);

/// Text of several lines for a terminal: the same, but a tab becomes four spaces and a line feed stays.
std::string printable(std::string_view text);

/// JSON string literal with its quotes, safe for a terminal; invalid bytes become U+FFFD.
std::string json_quote(std::string_view text);

/// `text` in double quotes for a message: escaped, and cut after `code_points_max` with `...`.
std::string quote(std::string_view text, std::size_t code_points_max = 60);

}  // namespace runner::core
