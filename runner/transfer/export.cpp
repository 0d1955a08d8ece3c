#include "runner/transfer/export.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include "runner/core/language/name_map.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/store/history.h"

namespace runner::transfer {
namespace {

namespace fs = std::filesystem;

using core::Node;
using store::RunSummary;
using Runs = std::vector<RunSummary>;

using Series = store::NamedSeries;

/// Non-finite numbers are text in JSON.
std::string json_number(double value) {
  return std::isfinite(value) ? core::number_text(value) : "\"" + core::number_text(value) + "\"";
}

core::Result<std::vector<Series>> read_all(const RunSummary& run, const std::vector<std::string>& wanted) {
  return store::read_all_series(run.run_dir, [&](const std::string& name) {
    const auto fits = [&](const std::string& one) { return core::matches_wildcard(one, name); };
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), fits);
  });
}

constexpr const char* kCsvTitles = "run,name,metric,step,time_ms,value\n";

void add_csv(const RunSummary& run, const std::vector<Series>& all, std::string& text) {
  for (const Series& series : all) {
    const std::string head =
        run.id + "," + core::csv_field(review::name_of(run)) + "," + core::csv_field(series.name) + ",";
    for (const store::SeriesPoint& point : series.points) {
      text += head + std::to_string(point.step) + "," + std::to_string(point.time_ms) + "," +
              core::number_text(point.value) + "\n";
    }
  }
}

void add_jsonl(const RunSummary& run, const std::vector<Series>& all, std::string& text) {
  for (const Series& series : all) {
    const std::string head = "{\"run\": " + core::json_quote(run.id) +
                             ", \"name\": " + core::json_quote(review::name_of(run)) +
                             ", \"metric\": " + core::json_quote(series.name) + ", \"step\": ";
    for (const store::SeriesPoint& point : series.points) {
      text += head + std::to_string(point.step) + ", \"time_ms\": " + std::to_string(point.time_ms) +
              ", \"value\": " + json_number(point.value) + "}\n";
    }
  }
}

/// `"points": {"loss": [[1, 1700000000000, 0.5], ...]}`: step, time, value. Written by hand: a tree of ten million
/// points would take gigabytes.
std::string points_json(const std::vector<Series>& all) {
  std::string text = "{";
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += (i == 0 ? "" : ", ") + core::json_quote(all[i].name) + ": [";
    for (std::size_t k = 0; k < all[i].points.size(); ++k) {
      const store::SeriesPoint& point = all[i].points[k];
      text += (k == 0 ? "[" : ", [") + std::to_string(point.step) + ", " + std::to_string(point.time_ms) + ", " +
              json_number(point.value) + "]";
    }
    text += "]";
  }
  return text + "}";
}

core::Result<std::string> run_as_json(const RunSummary& run, const std::vector<Series>& all) {
  Node node = review::run_json(run);
  node.set("recipe", run.resolved);
  Node list = Node::sequence();
  const auto events = store::read_events(run.run_dir);
  if (!events) return events.failure();
  for (const store::EventRow& event : events.value()) {
    Node row = Node::mapping();
    row.set("kind", Node::string(event.kind));
    row.set("step", Node::integer(event.step));
    row.set("time_ms", Node::integer(event.time_ms));
    row.set("data", event.data);
    list.items().push_back(std::move(row));
  }
  node.set("events", std::move(list));
  std::string text = core::to_json(node, -1);
  text.pop_back();
  return text + ", \"points\": " + points_json(all) + "}";
}

core::Result<std::string> text_of(const RunSummary& run, const RunsExportRequest& request) {
  const auto all = read_all(run, request.metrics);
  if (!all) return all.failure();
  if (request.format == "json") return run_as_json(run, all.value());
  std::string text;
  (request.format == "csv" ? add_csv : add_jsonl)(run, all.value(), text);
  return text;
}

/// Reports metrics that no run has: an empty file would say nothing about a misspelt name. False if there are some.
/// What cannot be read is reported later.
bool metrics_exist(const Runs& runs, const std::vector<std::string>& wanted, core::Diagnostics& diagnostics) {
  const auto is_unreadable = [](const RunSummary& run) { return run.status == store::RunStatus::kUnreadable; };
  if (std::any_of(runs.begin(), runs.end(), is_unreadable)) return true;
  for (const std::string& name : wanted) {
    const bool exists = std::any_of(runs.begin(), runs.end(), [&name](const RunSummary& run) {
      return std::any_of(run.metrics.begin(), run.metrics.end(),
                         [&name](const auto& metric) { return core::matches_wildcard(name, metric.first); });
    });
    if (!exists) review::report_no_metric(runs, name, diagnostics);
  }
  return !diagnostics.has_errors();
}

using Failures = std::vector<core::Failure>;

/// An unreadable one does not block others.
std::string content_of(const Runs& runs, const RunsExportRequest& request, Failures& unread) {
  const bool json = request.format == "json";
  std::string text = request.format == "csv" ? kCsvTitles : json && !request.per_run ? "[" : "";
  bool first = true;
  for (const RunSummary& run : runs) {
    const auto one = text_of(run, request);
    if (!one) {
      unread.push_back(one.failure());
      continue;
    }
    text += (json && !std::exchange(first, false) ? ",\n" : "") + one.value();
  }
  return json ? text + (request.per_run ? "\n" : "]\n") : text;
}

/// Writes one file, or returns the text for standard output.
core::Result<std::string> put(std::string content, const std::string& path) {
  if (path.empty()) return content;
  if (const auto written = core::write_output(path, content); !written) return written.failure();
  return "wrote " + path + "\n";
}

core::Result<std::string> put_all(const Runs& runs, const RunsExportRequest& request, Failures& unread) {
  if (!request.per_run) {
    std::string content = content_of(runs, request, unread);
    if (!runs.empty() && unread.size() == runs.size()) return std::string();  // nothing to write
    return put(std::move(content), request.output);
  }
  if (const auto made = core::make_folders(request.output); !made) return made.failure();
  std::string said;
  for (const RunSummary& run : runs) {
    const std::size_t before = unread.size();
    std::string content = content_of({run}, request, unread);
    if (unread.size() > before) continue;
    const std::string file = fs::path(run.run_dir).filename().string() + "." + request.format;
    const auto done = put(std::move(content), request.output + "/" + file);
    if (!done) return done.failure();
    said += done.value();
  }
  return said;
}

}  // namespace

std::optional<std::string> runs_export(const review::RunsContext& context, const RunsExportRequest& request,
                                       core::Diagnostics& diagnostics) {
  if (request.per_run && request.output.empty()) {
    diagnostics.error({}, "--per-run writes a file for each run, but --output names no folder for them");
    return std::nullopt;
  }
  const bool newest = request.runs.empty() && request.filter.empty();
  const auto runs = review::choose_runs(context, newest ? std::vector<std::string>{"last"} : request.runs,
                                        request.filter, diagnostics);
  if (!runs || !metrics_exist(*runs, request.metrics, diagnostics)) return std::nullopt;
  Failures unread;
  auto said = put_all(*runs, request, unread);
  for (const core::Failure& failure : unread) {
    if (unread.size() == runs->size()) {
      diagnostics.error({}, failure.message, failure.hint);
    } else {
      diagnostics.warning({}, failure.message + "; skipping this run", failure.hint);
    }
  }
  if (said) return std::move(said).value();
  diagnostics.error({}, said.failure().message, said.failure().hint);
  return std::nullopt;
}

}  // namespace runner::transfer
