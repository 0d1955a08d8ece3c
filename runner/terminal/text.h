#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/utf8.h"

namespace runner::terminal {

/// What the commands of `roux runs` write to.
struct Terminal {
  int width = 0;        ///< columns; 0: not a terminal, nothing is cut
  bool unicode = true;  ///< the locale is UTF-8: braille, box lines, ellipsis
  bool color = false;

  /// Of standard output: its size, LC_ALL / LC_CTYPE / LANG. `color` is decided by the caller.
  static Terminal of_stdout(bool color);
};

/// `1.2346`, `3e-05`, `12000`, `nan`: five significant digits.
std::string number_text(double value);
/// `just now`, `42 s ago`, `3 min ago`, `2 h ago`, `5 days ago`, then the date.
std::string ago_text(std::int64_t then_ms, std::int64_t now_ms);
using core::printable;         // so that a name or a sample cannot talk to the terminal
using core::terminal_columns;  // what a text takes there
/// `text` in so many columns: on one line, cut with an ellipsis where it is longer.
std::string cut_text(std::string_view text, std::size_t columns, const Terminal& terminal);

enum class Paint { kNone, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };
std::string painted(std::string_view text, Paint paint, const Terminal& terminal);

struct Cell {
  std::string text;
  Paint paint = Paint::kNone;
};

struct Column {
  std::string title;
  bool to_the_right = false;  ///< numbers
  bool may_shrink = false;    ///< cut, with an ellipsis, where the terminal is too narrow
};

/// Columns two blanks apart under a line of titles. Where the terminal is narrower than the table, columns that may
/// shrink do so, down to eight characters; the rest is left to the terminal. No cell is wider than 120 columns, and
/// each is on one line, whatever stands in it.
std::string table_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                       const Terminal& terminal);

}  // namespace runner::terminal
