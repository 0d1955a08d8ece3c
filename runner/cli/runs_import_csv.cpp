#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "runner/cli/runs_import.h"
#include "runner/core/files.h"
#include "runner/core/utf8.h"

// Tables of metrics: a column `step` and one a metric (Lightning's CSVLogger and many others), or `step`, `metric` and
// `value` (`roux runs export`).

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using Row = std::vector<std::string>;

constexpr std::int64_t kFileBytesMax = std::int64_t{1} << 30;

/// RFC 4180: fields in quotes may hold commas, line ends and doubled quotes.
std::vector<Row> read_rows(const std::string& text) {
  std::vector<Row> rows(1);
  std::string field;
  bool quoted = false;
  const auto end_row = [&] {
    rows.back().push_back(std::exchange(field, {}));
    rows.emplace_back();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == ',') {
      rows.back().push_back(std::exchange(field, {}));
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      field += c;
    }
  }
  if (!field.empty() || !rows.back().empty()) end_row();
  rows.pop_back();
  return rows;
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Of a step or a time; Python writes 3.0 where a column lacks a value somewhere.
std::optional<std::int64_t> whole(const std::string& text) {
  constexpr double kMost = 0x1p53;
  const auto value = number(text);
  if (!value || !(std::fabs(*value) <= kMost)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::ptrdiff_t column(const Row& titles, const std::string& name) {
  const auto at = std::find(titles.begin(), titles.end(), name);
  return at == titles.end() ? -1 : at - titles.begin();
}

struct Layout {
  std::ptrdiff_t step, time, metric, value, run;
};

/// A metric a row.
void take_long(const Row& row, const Layout& at, ForeignRun& run) {
  const auto step = whole(row[at.step]);
  const auto value = number(row[at.value]);
  if (!step || !value) return;
  const auto time = at.time < 0 ? std::nullopt : whole(row[at.time]);
  run.series[row[at.metric]].push_back({*step, time.value_or(0), *value});
}

/// A column a metric; where a metric was not logged, its field is empty.
void take_wide(const Row& titles, const Row& row, const Layout& at, ForeignRun& run) {
  const auto step = whole(row[at.step]);
  if (!step) return;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const auto place = static_cast<std::ptrdiff_t>(i);
    const auto value = place == at.step || place == at.time ? std::nullopt : number(row[i]);
    if (value) run.series[titles[i]].push_back({*step, 0, *value});
  }
}

}  // namespace

core::Result<std::vector<ForeignRun>> read_metrics_csv(const std::string& path) {
  std::vector<ForeignRun> runs;
  std::error_code ignored;
  if (!path.ends_with(".csv") || !fs::is_regular_file(path, ignored)) return runs;
  const auto text = core::read_file(path, kFileBytesMax);
  if (!text) return text.failure();
  const std::vector<Row> rows = read_rows(text.value());
  if (rows.empty() || column(rows[0], "step") < 0) return runs;
  const Row& titles = rows[0];
  const Layout at = {column(titles, "step"), column(titles, "time_ms"), column(titles, "metric"),
                     column(titles, "value"), column(titles, "run")};
  const bool is_long = at.metric >= 0 && at.value >= 0;
  const std::string source = fs::absolute(path).lexically_normal().string();
  std::map<std::string, ForeignRun> by_run;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() == 1 && rows[i][0].empty()) continue;  // a blank line
    if (rows[i].size() != titles.size()) {
      return core::Failure{path + ": row " + std::to_string(i + 1) + " has " + std::to_string(rows[i].size()) +
                               " fields, and the titles are " + std::to_string(titles.size()),
                           "a comma within a field needs quotes round it"};
    }
    const std::string id = is_long && at.run >= 0 ? rows[i][at.run] : "";
    ForeignRun& run = by_run[id];
    if (is_long) {
      take_long(rows[i], at, run);
    } else {
      take_wide(titles, rows[i], at, run);
    }
  }
  for (auto& [id, run] : by_run) {
    run.tool = "csv";
    run.source = source + (id.empty() ? "" : "#" + id);
    run.name = id.empty() ? fs::path(path).stem().string() : id;
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace runner::cli
