// Renders diagnostics: location, message, the line with carets, hint.
#include <algorithm>
#include <cstdio>

#include "runner/core/diagnostics.h"
#include "runner/core/text/utf8.h"

namespace runner::core {
namespace {

constexpr std::size_t kExcerptColumnsMax = 100;
constexpr std::size_t kShownMax = 100;  // diagnostics of one pass; more are useless
constexpr const char* kBold = "\033[1m";
constexpr const char* kReset = "\033[0m";

const char* severity_text(Severity severity) {
  switch (severity) {
    case Severity::kError: return "error";
    case Severity::kWarning: return "warning";
    case Severity::kNotice: return "notice";
  }
  return "error";
}

const char* severity_color(Severity severity) {
  switch (severity) {
    case Severity::kError: return "\033[1;31m";
    case Severity::kWarning: return "\033[1;33m";
    case Severity::kNotice: return "\033[1;36m";
  }
  return kBold;
}

std::string_view line_of(std::string_view text, int line) {
  std::size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return {};
    begin = end + 1;
  }
  std::string_view rest = text.substr(begin, text.find('\n', begin) - begin);
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

struct Cell {
  std::string shown;
  std::size_t columns = 0;
};

std::vector<Cell> cells_of(std::string_view line, std::size_t skip, std::size_t cells_max) {
  std::vector<Cell> cells;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < skip && begin < line.size(); ++i)
    begin += std::max<std::size_t>(utf8_length(line, begin), 1);
  for (std::size_t at = begin; at < line.size() && cells.size() < cells_max;) {
    const std::size_t length = std::max<std::size_t>(utf8_length(line, at), 1);
    const std::string_view code_point = line.substr(at, length);
    Cell cell{escape_for_terminal(code_point), 0};
    cell.columns = cell.shown == code_point ? terminal_columns(code_point) : cell.shown.size();
    cells.push_back(std::move(cell));
    at += length;
  }
  return cells;
}

// The line with the error underlined; a long line is cut to a window around the caret.
std::string excerpt(const Location& location, bool color, const char* caret_color) {
  const auto begin = static_cast<std::size_t>(std::max(location.column, 1)) - 1;
  const auto width = static_cast<std::size_t>(std::max(location.width, 1));
  const std::size_t from = begin > kExcerptColumnsMax * 2 / 3 ? begin - kExcerptColumnsMax / 3 : 0;
  const auto cells = cells_of(line_of(location.source->text, location.line), from, kExcerptColumnsMax + 1);
  const std::size_t shown_cells = std::min(cells.size(), kExcerptColumnsMax);
  if (begin - from > cells.size()) return "";

  std::string shown = from > 0 ? "..." : "";
  std::size_t columns = shown.size();
  std::size_t caret_at = columns;
  std::size_t caret_columns = 0;
  for (std::size_t i = 0; i < shown_cells; ++i) {
    if (from + i == begin) caret_at = columns;
    shown += cells[i].shown;
    columns += cells[i].columns;
    if (from + i >= begin && from + i < begin + width) caret_columns += cells[i].columns;
  }
  if (begin - from == cells.size()) caret_at = columns;
  if (shown_cells < cells.size()) shown += "...";

  char number[16];
  std::snprintf(number, sizeof number, "%5d", location.line);
  const std::string carets = "^" + std::string(caret_columns > 1 ? caret_columns - 1 : 0, '~');
  const std::string margin(std::string(number).size() + 1, ' ');
  const std::string underline = color ? caret_color + carets + kReset : carets;
  const std::string gap = shown.empty() ? "" : " ";
  return std::string(number) + " |" + gap + shown + "\n" + margin + "| " + std::string(caret_at, ' ') + underline +
         "\n";
}

}  // namespace

std::string render(const Diagnostic& diagnostic, const RenderOptions& options) {
  const Location& location = diagnostic.location;
  const std::string where = escape_for_terminal(location.text());
  const std::string message = escape_for_terminal(diagnostic.message);
  const char* color = severity_color(diagnostic.severity);
  std::string out;
  if (!where.empty()) out += options.color ? kBold + where + ": " + kReset : where + ": ";
  const std::string severity = severity_text(diagnostic.severity);
  out += options.color ? color + severity + ": " + kReset + kBold + message + kReset : severity + ": " + message;
  out += "\n";
  if (options.excerpts && location.known() && location.line > 0 && !location.source->text.empty()) {
    out += excerpt(location, options.color, color);
  }
  if (!diagnostic.hint.empty()) out += "  hint: " + escape_for_terminal(diagnostic.hint) + "\n";
  return out;
}

std::string render(const Diagnostics& diagnostics, const RenderOptions& options) {
  std::string out;
  std::size_t shown = 0;
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (shown++ == kShownMax) {
      return out + "... and " + std::to_string(diagnostics.all().size() - kShownMax) + " more\n";
    }
    out += render(diagnostic, options);
  }
  return out;
}

}  // namespace runner::core
