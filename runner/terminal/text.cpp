#include "runner/terminal/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "runner/core/text/text.h"

namespace runner::terminal {
namespace {

constexpr std::size_t kShrinkTo = 8;
constexpr std::size_t kGap = 2;
constexpr std::size_t kCellColumnsMax = 120;

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string text = core::lower(value);
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

std::vector<std::size_t> natural_widths(const std::vector<std::vector<Cell>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], terminal_columns(row[i].text));
  }
  return widths;
}

void shrink(std::vector<std::size_t>& widths, const std::vector<Column>& columns, std::size_t room) {
  std::size_t total = kGap * (widths.size() - 1);
  for (const std::size_t width : widths) total += width;
  while (total > room) {
    std::size_t widest = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!columns[i].may_shrink || widths[i] <= kShrinkTo) continue;
      if (widest == columns.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns.size()) return;
    --widths[widest];
    --total;
  }
}

std::string line_of(const std::vector<Column>& columns, const std::vector<Cell>& cells,
                    const std::vector<std::size_t>& widths, const Terminal& terminal) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string text = cut_text(cells[i].text, widths[i], terminal);
    const std::string blanks(widths[i] - std::min(widths[i], terminal_columns(text)), ' ');
    if (columns[i].to_the_right) line += blanks;
    line += painted(text, cells[i].paint, terminal);
    if (i + 1 == columns.size()) break;
    if (!columns[i].to_the_right) line += blanks;
    line.append(kGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

Terminal Terminal::of_stdout(bool color) {
  Terminal terminal;
  terminal.color = color;
  terminal.unicode = locale_is_utf8();
  if (isatty(STDOUT_FILENO) == 0) return terminal;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
  return terminal;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> text{};
  // Counts stay readable: 12000, not 1.2e+04.
  const bool whole = value == std::floor(value) && std::fabs(value) < 1e9;
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.5g", value);
  return text.data();
}

std::string ago_text(std::int64_t then_ms, std::int64_t now_ms) {
  const std::int64_t seconds = (now_ms - then_ms) / 1000;
  if (seconds < 5) return "just now";
  if (seconds < 120) return std::to_string(seconds) + " s ago";
  if (seconds < 2 * 3600) return std::to_string(seconds / 60) + " min ago";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + " h ago";
  if (seconds < 60 * 86400) return std::to_string(seconds / 86400) + " days ago";
  const auto time = static_cast<std::time_t>(then_ms / 1000);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

std::string cut_text(std::string_view text, std::size_t columns, const Terminal& terminal) {
  std::string line = core::escape_for_terminal(text);
  if (terminal_columns(line) <= columns) return line;
  const std::string_view ellipsis = terminal.unicode ? "\u2026" : "~";
  return std::string(core::first_columns(line, columns > 0 ? columns - 1 : 0)).append(ellipsis);
}

std::string painted(std::string_view text, Paint paint, const Terminal& terminal) {
  static constexpr std::array<const char*, 9> kCodes = {"", "1", "2", "31", "32", "33", "34", "35", "36"};
  if (!terminal.color || paint == Paint::kNone) return std::string(text);
  return "\x1b[" + std::string(kCodes[static_cast<std::size_t>(paint)]) + "m" + std::string(text) + "\x1b[0m";
}

std::string table_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                       const Terminal& terminal) {
  std::vector<std::vector<Cell>> lines(1);
  for (const Column& column : columns) lines[0].push_back({column.title, Paint::kBold});
  lines.insert(lines.end(), rows.begin(), rows.end());
  for (auto& line : lines) {
    for (Cell& cell : line) cell.text = cut_text(cell.text, kCellColumnsMax, terminal);
  }
  std::vector<std::size_t> widths = natural_widths(lines);
  if (terminal.width > 0) shrink(widths, columns, static_cast<std::size_t>(terminal.width));
  std::string text;
  for (const auto& line : lines) text += line_of(columns, line, widths, terminal);
  return text;
}

}  // namespace runner::terminal
