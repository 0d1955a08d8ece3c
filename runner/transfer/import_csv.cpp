#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/transfer/import.h"

// Tables of metrics: a column `step` and one a metric (Lightning's CSVLogger and many others), or `step`, `metric` and
// `value` (`roux runs export`).

namespace runner::transfer {
namespace {

namespace fs = std::filesystem;

using Row = std::vector<std::string>;

constexpr std::int64_t kFileBytesMax = std::int64_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // Excel begins with it

/// RFC 4180: fields in quotes may hold commas, line ends and doubled quotes.
core::Result<std::vector<Row>> read_rows(std::string_view text) {
  std::vector<Row> rows(1);
  std::string field;
  bool quoted = false;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
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
  if (quoted) return core::Failure{"a quote is opened in row " + std::to_string(rows.size()) + " and never closed"};
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
std::optional<std::int64_t> whole(std::optional<double> value) {
  constexpr double kMost = 0x1p53;
  if (!value || !(std::fabs(*value) <= kMost)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// -1 where there is none. W&B and TensorBoard write `Step`.
std::ptrdiff_t column(const Row& titles, std::string_view name) {
  const auto same = [&](const std::string& title) {
    return std::equal(title.begin(), title.end(), name.begin(), name.end(),
                      [](unsigned char a, unsigned char b) { return (a == ' ' ? '_' : std::tolower(a)) == b; });
  };
  const auto at = std::find_if(titles.begin(), titles.end(), same);
  return at == titles.end() ? -1 : at - titles.begin();
}

struct Layout {
  std::ptrdiff_t step, time_ms, wall_time, metric, value, run;

  bool is_point(std::size_t column) const {
    const auto place = static_cast<std::ptrdiff_t>(column);
    return place != step && place != time_ms && place != wall_time;
  }
};

std::int64_t time_of(const Row& row, const Layout& at) {
  if (at.time_ms >= 0) return whole(number(row[at.time_ms])).value_or(0);
  const auto seconds = at.wall_time < 0 ? std::nullopt : number(row[at.wall_time]);
  return seconds ? whole(*seconds * 1000).value_or(0) : 0;
}

/// One metric per row. Each of these returns the number of skipped values.
std::int64_t take_long(const Row& row, const Layout& at, ForeignRun& run) {
  const auto step = whole(number(row[at.step]));
  const auto value = number(row[at.value]);
  if (!step || !value) return 1;
  run.series[row[at.metric]].push_back({*step, time_of(row, at), *value});
  return 0;
}

/// A column a metric; where a metric was not logged, its field is empty.
std::int64_t take_wide(const Row& titles, const Row& row, const Layout& at, ForeignRun& run) {
  const auto step = whole(number(row[at.step]));
  std::int64_t left_out = 0;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (!at.is_point(i) || row[i].empty()) continue;
    const auto value = number(row[i]);
    if (step && value) {
      run.series[titles[i]].push_back({*step, time_of(row, at), *value});
    } else {
      ++left_out;
    }
  }
  return left_out;
}

}  // namespace

core::Result<std::vector<ForeignRun>> read_metrics_csv(const std::string& path) {
  std::vector<ForeignRun> runs;
  std::error_code ignored;
  if (!path.ends_with(".csv") || !fs::is_regular_file(path, ignored)) return runs;
  const auto text = core::read_file(path, kFileBytesMax);
  if (!text) return text.failure();
  const auto read = read_rows(text.value());
  if (!read) return core::Failure{path + ": " + read.failure().message};
  const std::vector<Row>& rows = read.value();
  if (rows.empty() || column(rows[0], "step") < 0) return runs;
  const Row& titles = rows[0];
  const Layout at = {column(titles, "step"),   column(titles, "time_ms"), column(titles, "wall_time"),
                     column(titles, "metric"), column(titles, "value"),   column(titles, "run")};
  const bool is_long = at.metric >= 0 && at.value >= 0;
  const std::string source = fs::absolute(path).lexically_normal().string();
  std::map<std::string, ForeignRun> by_run;
  std::map<std::string, std::int64_t> left_out;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() == 1 && rows[i][0].empty()) continue;  // a blank line
    if (rows[i].size() != titles.size()) {
      return core::Failure{path + ": row " + std::to_string(i + 1) + " has " + std::to_string(rows[i].size()) +
                               " fields, but the header has " + std::to_string(titles.size()),
                           "quote fields that contain a comma"};
    }
    const std::string id = is_long && at.run >= 0 ? rows[i][at.run] : "";
    left_out[id] += is_long ? take_long(rows[i], at, by_run[id]) : take_wide(titles, rows[i], at, by_run[id]);
  }
  for (auto& [id, run] : by_run) {
    if (left_out[id] > 0) {
      run.problems.push_back(path + ": " + core::counted(left_out[id], "value", "values") +
                             " skipped: a point needs a number and an integer step");
    }
    run.tool = "csv";
    run.source = source + (id.empty() ? "" : "#" + id);
    run.name = id.empty() ? fs::path(path).stem().string() : id;
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace runner::transfer
