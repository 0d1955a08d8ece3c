#include "runner/review/compare/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runner/chart/chart.h"
#include "runner/chart/document.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/review/compare/groups.h"
#include "runner/review/compare/recipe_diff.h"
#include "runner/review/media.h"
#include "runner/store/annotations.h"
#include "runner/store/database/text.h"

namespace runner::review {
namespace {

using store::RunSummary;
using Runs = std::vector<RunSummary>;
using Table = std::vector<std::vector<std::string>>;

void add_runs(const Runs& runs, const std::vector<std::string>& metrics, chart::Document& document) {
  document.heading(2, "Runs");
  Table rows = {{"id", "name", "status", "step", "began", "took", "tags"}};
  rows[0].insert(rows[0].begin() + 4, metrics.begin(), metrics.end());
  for (const RunSummary& run : runs) {
    const double seconds = static_cast<double>(std::max<std::int64_t>(run.ended_ms - run.created_ms, 0)) / 1000.0;
    std::vector<std::string> row = {run.id, name_of(run), std::string(to_text(run.status)), std::to_string(run.step)};
    for (const std::string& metric : metrics) {
      const auto at = run.metrics.find(metric);
      row.push_back(at == run.metrics.end() ? "-" : terminal::number_text(at->second));
    }
    row.push_back(store::utc_text(run.created_ms));
    row.push_back(run.ended_ms > 0 ? core::format_duration(seconds) : "-");
    row.push_back(core::joined(run.tags));
    rows.push_back(std::move(row));
  }
  document.table(rows);
}

void add_pictures(const Runs& runs, const RunsReportRequest& request, const std::vector<std::string>& metrics,
                  chart::Document& document, core::Diagnostics& diagnostics) {
  if (metrics.empty()) return;
  document.heading(2, "Metrics");
  for (const std::string& metric : metrics) {
    CurvesRequest one = request.curves;
    one.metrics = {metric};
    const auto all = load_curves(runs, one, diagnostics);
    if (!all) return;
    chart::ChartOptions options;
    options.title = metric;
    options.x_title = all->x_title;
    options.log_y = request.log_y;
    document.picture(chart::chart_svg(all->curves, options),
                     metric + " of " + core::counted(static_cast<std::int64_t>(all->curves.size()), "run", "runs"));
  }
}

void add_differences(const Runs& runs, chart::Document& document) {
  const auto add = [&](const char* title, const std::vector<DifferingRow>& differing) {
    if (differing.empty()) return;
    document.heading(2, title);
    Table rows = {{"key"}};
    for (const RunSummary& run : runs) rows[0].push_back(run.id);
    for (const DifferingRow& row : differing) {
      rows.push_back({row.key});
      for (const auto& value : row.values) rows.back().push_back(value.value_or("-"));
    }
    document.table(rows);
  };
  if (runs.size() < 2) return;
  add("Recipe, where it differs", differing_keys(runs));
  add("Environment, where it differs", differing_environment(runs));
}

/// Only where something was repeated.
void add_replicates(const Runs& runs, const std::string& metric, chart::Document& document) {
  const RunsGroupsRequest request{.metric = metric};
  const Replicates all = replicates_of(runs, request);
  const bool repeated = std::any_of(all.groups.begin(), all.groups.end(),
                                    [](const ReplicateGroup& group) { return group.values.size() > 1; });
  if (!repeated) return;
  document.heading(2, "Repetitions");
  document.paragraph("Runs of the same recipe with different seeds; the last value of " + metric +
                     ", its mean with a 95 % interval by Student's t.");
  Table rows = {{"group", "runs", "mean", "95 % interval"}};
  for (const ReplicateGroup& group : all.groups) {
    const Spread& spread = group.spread;
    const std::string ids = core::joined(group.runs, " ", &RunSummary::id);
    rows.push_back({group.name, ids, terminal::number_text(spread.mean),
                    std::isnan(spread.half_width) ? "-"
                                                  : terminal::number_text(spread.mean - spread.half_width) + " to " +
                                                        terminal::number_text(spread.mean + spread.half_width)});
  }
  document.table(rows);
  std::vector<std::string> verdicts;
  for (const GroupVerdict& verdict : all.verdicts) verdicts.push_back(verdict_text(all, verdict, request.test));
  if (!verdicts.empty()) document.list(verdicts);
}

void add_notes(const Runs& runs, chart::Document& document) {
  bool any = false;
  for (const RunSummary& run : runs) {
    for (const auto& [time_ms, note] : store::read_annotations(run.run_dir).notes) {
      if (!any) document.heading(2, "Notes");
      any = true;
      document.verbatim(run.id + " " + name_of(run) + ", " + store::utc_text(time_ms), note);
    }
  }
}

void add_recipes(const Runs& runs, chart::Document& document) {
  document.heading(2, "Recipes");
  for (const RunSummary& run : runs) {
    if (!run.resolved.is_mapping()) continue;
    document.verbatim(run.id + " " + name_of(run), core::to_yaml(run.resolved));
  }
}

}  // namespace

std::optional<std::string> runs_report(const RunsContext& context, const RunsReportRequest& request,
                                       core::Diagnostics& diagnostics) {
  const bool newest = request.runs.empty() && request.filter.empty();
  const auto runs =
      choose_runs(context, newest ? std::vector<std::string>{"last"} : request.runs, request.filter, diagnostics);
  if (!runs) return std::nullopt;
  const std::vector<std::string> metrics = request.curves.metrics.empty() ? key_metrics(*runs) : request.curves.metrics;
  const std::string title = !request.title.empty() ? request.title
                            : runs->size() == 1    ? name_of(runs->front())
                                                   : std::to_string(runs->size()) + " runs";
  const auto document = request.output.ends_with(".md") ? chart::markdown_document(title) : chart::html_document(title);
  document->paragraph("Written by roux at " + store::utc_text(context.clock.wall_ms()) + " from " + context.output_dir +
                      ".");
  add_runs(*runs, metrics, *document);
  add_pictures(*runs, request, metrics, *document, diagnostics);
  for (const RunSummary& run : *runs) add_media(run, *document);
  add_differences(*runs, *document);
  if (!metrics.empty()) add_replicates(*runs, metrics.front(), *document);
  add_notes(*runs, *document);
  add_recipes(*runs, *document);
  if (diagnostics.has_errors()) return std::nullopt;
  if (const auto written = core::write_output(request.output, document->text()); !written) {
    diagnostics.error({}, written.failure().message, written.failure().hint);
    return std::nullopt;
  }
  return "wrote " + request.output + "\n";
}

}  // namespace runner::review
