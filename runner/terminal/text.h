#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/text/utf8.h"

namespace runner::terminal {

/// The terminal, or the file, that reports are printed to.
struct Terminal {
  int width = 0;        ///< columns; 0: not a terminal, nothing is cut
  bool unicode = true;  ///< the locale is UTF-8: braille, box lines, ellipsis
  bool color = false;

  /// Standard output: its size, LC_ALL / LC_CTYPE / LANG. The caller decides on `color`.
  static Terminal of_stdout(bool color);
};

/// `1.2346`, `3e-05`, `12000`, `nan`: five significant digits.
std::string number_text(double value);
/// `just now`, `42 s ago`, `3 min ago`, `2 h ago`, `5 days ago`, then the date.
std::string ago_text(std::int64_t then_ms, std::int64_t now_ms);
using core::printable;         // so that names and samples cannot send control sequences
using core::terminal_columns;  // width of a text
/// `text` on one line of at most `columns`, cut with an ellipsis if it is longer.
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
  bool may_shrink = false;    ///< cut with an ellipsis if the terminal is too narrow
};

/// A table: a line of titles, columns separated by two blanks. If the terminal is too narrow, columns that may shrink
/// do so, down to eight characters. Each cell is on one line of at most 120 columns.
std::string table_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                       const Terminal& terminal);

}  // namespace runner::terminal
