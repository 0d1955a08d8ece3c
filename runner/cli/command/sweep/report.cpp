#include "runner/chart/document.h"
#include "runner/cli/group/sweep.h"
#include "runner/core/platform/files.h"
#include "runner/core/units.h"
#include "runner/query/filter.h"
#include "runner/review/sweep/charts.h"
#include "runner/review/sweep/summary.h"
#include "runner/review/sweep/trials_table.h"
#include "runner/store/database/text.h"

namespace runner::cli {
namespace {

constexpr std::size_t kPairsInReport = 3;  // parameters whose pairs are drawn

struct SweepReportRequest {
  std::string sweep = "last", output = "sweep.html";
};

void add_picture(const review::Picture& picture, chart::Document& document) {
  if (picture.charts.empty()) return;
  document.picture(chart::charts_svg(picture.charts, picture.columns), picture.charts.front().options.title);
}

std::string field_of(const store::RunSummary& row, const std::string& column, const core::Clock& clock) {
  const auto value = query::run_value(row, column, clock);
  if (!value) return "-";
  if (column == "duration") return core::format_duration(value->as_double());
  return value->kind() == core::Node::Kind::kFloat ? terminal::number_text(value->as_double()) : value->scalar_text();
}

void add_trials(const sweep::OpenSweep& open, const core::Clock& clock, chart::Document& document) {
  const std::vector<std::string> columns = review::trial_columns(open);
  std::vector<std::vector<std::string>> rows = {columns};
  for (const store::RunSummary& row : review::trials_as_runs(open)) {
    std::vector<std::string>& fields = rows.emplace_back();
    for (const std::string& column : columns) fields.push_back(field_of(row, column, clock));
  }
  document.heading(2, "Trials");
  document.table(rows);
}

void add_pictures(const review::SweepHistory& history, chart::Document& document) {
  document.heading(2, "Progress");
  add_picture(review::history_picture(history), document);
  add_picture(review::intermediate_picture(history), document);
  add_picture(review::timeline_picture(history), document);
  add_picture(review::edf_picture(history), document);
  if (history.sweep.objectives().size() > 1) add_picture(review::pareto_picture(history), document);
  const std::vector<std::size_t> parameters = review::parameters_to_plot(history);
  if (parameters.empty()) return;
  document.heading(2, "Parameters");
  if (review::measured(history).size() > 1)
    add_picture(review::importance_picture(history, review::importance_of(history)), document);
  add_picture(review::parallel_picture(history, parameters), document);
  add_picture(review::slice_picture(history, parameters), document);
  add_picture(review::contour_picture(history, review::parameters_to_plot(history, kPairsInReport)), document);
}

std::optional<std::string> answer(const sweep::OpenSweep& open, const SweepReportRequest& request,
                                  const review::RunsContext& context, core::Diagnostics& diagnostics) {
  const review::SweepHistory history = review::read_history(open, context.clock);
  const std::string title = "Sweep " + history.name;
  const auto document = request.output.ends_with(".md") ? chart::markdown_document(title) : chart::html_document(title);
  document->paragraph("Written by roux at " + store::utc_text(context.clock.wall_ms()) + " from " +
                      open.study->folder() + ".");
  sweep::StudyCounters counters(open.sweep);
  document->paragraph(open.sweep.metric() +
                      (open.sweep.maximizes() ? ", larger is better: " : ", smaller is better: ") +
                      review::progress_text(review::progress_of(open.sweep, counters.update(*open.study))) + ".");
  const std::vector<std::string> best = review::best_lines(open.sweep, counters, history.variants);
  if (!best.empty()) document->list(best);
  add_pictures(history, *document);
  add_trials(open, context.clock, *document);
  document->heading(2, "Recipe");
  document->verbatim(open.study->info().recipe_path, core::to_yaml(open.sweep.base().resolved()));
  if (const auto written = core::write_output(request.output, document->text()); !written) {
    diagnostics.error({}, written.failure().message, written.failure().hint);
    return std::nullopt;
  }
  return "wrote " + request.output + "\n";
}

}  // namespace

void add_sweep_report(Command sweep, Session& session) {
  const auto request = std::make_shared<SweepReportRequest>();
  Command command = sweep.add_subcommand("report", "Write a report about a sweep: plots, trials, the recipe");
  add_sweep_name(command, request->sweep);
  add_output(command, request->output, "File to write: Markdown if it ends with .md, otherwise HTML");
  command.footer("\nExamples:\n  roux sweep report\n  roux sweep report tiny-gpt --output tuning.md\n");
  on_sweep_call<SweepReportRequest>(command, session, request, answer);
}

}  // namespace runner::cli
