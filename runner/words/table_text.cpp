#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/words/reader.h"

namespace runner::words {
namespace {

using Kind = Outcome::Kind;

constexpr std::size_t kLeftMax = 48;

constexpr std::pair<Kind, const char*> kTitles[] = {{Kind::kTaken, "taken"},
                                                    {Kind::kChanged, "changed"},
                                                    {Kind::kNoEffect, "without effect"},
                                                    {Kind::kPlanned, "planned"},
                                                    {Kind::kRefused, "refused"}};

/// Broken at blanks; a longer word has a line of its own.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (core::terminal_columns(line) + 1 + core::terminal_columns(word) <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
    at = end + 1;
  }
  return lines;
}

/// What stands left and right; rows of one reason are one.
std::vector<std::pair<std::string, std::string>> cells_of(const std::vector<Row>& rows, Kind kind) {
  std::vector<std::pair<std::string, std::string>> cells;
  for (const Row& row : rows) {
    if (row.kind != kind || !row.asks) continue;
    const std::string key = core::escape_for_terminal(row.key);
    const auto same =
        std::find_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.second == row.text; });
    const bool joins = kind != Kind::kTaken && kind != Kind::kChanged && same != cells.end();
    if (joins) {
      same->first += ", " + key;
    } else if (kind == Kind::kTaken || kind == Kind::kChanged) {
      cells.emplace_back(key + ": " + row.value, row.text);
    } else {
      cells.emplace_back(key, row.text);
    }
  }
  return cells;
}

}  // namespace

std::string table_text(const std::vector<Row>& rows, std::size_t width) {
  const auto count = [&](Kind kind) {
    return std::count_if(rows.begin(), rows.end(), [&](const Row& row) { return row.kind == kind && row.asks; });
  };
  std::string counts, text;
  std::size_t left = 0;
  for (const auto& [kind, title] : kTitles) {
    if (count(kind) > 0) counts += (counts.empty() ? "" : ", ") + std::to_string(count(kind)) + " " + title;
    for (const auto& cell : cells_of(rows, kind)) left = std::max(left, core::terminal_columns(cell.first));
  }
  const auto idle = std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !row.asks; });
  if (idle > 0)
    counts += (counts.empty() ? "" : ", ") + std::to_string(idle) + (idle == 1 ? " asks" : " ask") + " for nothing";
  left = std::min(left, kLeftMax);
  for (const auto& [kind, title] : kTitles) {
    if (count(kind) == 0) continue;
    text += std::string(title) + "\n";
    for (const auto& [first, second] : cells_of(rows, kind)) {
      const std::vector<std::string> keys = wrapped(first, left), reasons = wrapped(second, width - left - 4);
      for (std::size_t i = 0; i < std::max(keys.size(), reasons.size()); ++i) {
        std::string line = "  " + (i < keys.size() ? keys[i] : "");
        if (i < reasons.size() && !reasons[i].empty()) {
          const std::size_t columns = core::terminal_columns(line);
          line += std::string(columns < left + 4 ? left + 4 - columns : 1, ' ') + reasons[i];
        }
        text += line + "\n";
      }
    }
  }
  return core::counted(static_cast<std::int64_t>(rows.size()), "key", "keys") + ": " + counts + "\n" + text;
}

}  // namespace runner::words
