#include "runner/cli/runs_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace runner::cli {
namespace {

constexpr std::size_t kShrinkTo = 8;
constexpr std::size_t kGap = 2;

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text = value;
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string cut(const std::string& text, std::size_t width, bool unicode) {
  if (display_width(text) <= width) return text;
  const std::string_view ellipsis = unicode ? "\u2026" : "~";
  std::string kept;
  std::size_t taken = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (starts_code_point(text[at]) && ++taken == width) break;
    kept += text[at];
  }
  return kept.append(ellipsis);
}

std::vector<std::size_t> natural_widths(const std::vector<Column>& columns,
                                        const std::vector<std::vector<Cell>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = display_width(columns[i].title);
    for (const auto& row : rows) width = std::max(width, display_width(row[i].text));
    widths.push_back(width);
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
    const std::string text = cut(cells[i].text, widths[i], terminal.unicode);
    const std::string blanks(widths[i] - std::min(widths[i], display_width(text)), ' ');
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

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string painted(std::string_view text, Paint paint, const Terminal& terminal) {
  static constexpr std::array<const char*, 9> kCodes = {"", "1", "2", "31", "32", "33", "34", "35", "36"};
  if (!terminal.color || paint == Paint::kNone) return std::string(text);
  return "\x1b[" + std::string(kCodes[static_cast<std::size_t>(paint)]) + "m" + std::string(text) + "\x1b[0m";
}

std::string table_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                       const Terminal& terminal) {
  std::vector<std::size_t> widths = natural_widths(columns, rows);
  if (terminal.width > 0) shrink(widths, columns, static_cast<std::size_t>(terminal.width));
  std::vector<Cell> titles;
  for (const Column& column : columns) titles.push_back({column.title, Paint::kBold});
  std::string text = line_of(columns, titles, widths, terminal);
  for (const auto& row : rows) text += line_of(columns, row, widths, terminal);
  return text;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace runner::cli
