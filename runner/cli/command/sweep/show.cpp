#include <cstdio>

#include "runner/cli/group/sweep.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/review/sweep/board.h"
#include "runner/review/sweep/summary.h"
#include "runner/review/sweep/trials_table.h"
#include "runner/review/terminal_plot.h"
#include "runner/store/database/text.h"
#include "runner/sweep/analysis/regret.h"
#include "runner/sweep/study/variant_summary.h"

namespace runner::cli {
namespace {

using sweep::Trial;

struct SweepShowRequest {
  std::string sweep = "last";
  std::optional<std::int64_t> trial;
  review::RunsListRequest list = {};
  bool watch = false;
};

/// How far the sweep is from `stop.regret_bound`; "" without one.
std::string regret_line(const sweep::OpenSweep& open) {
  if (!open.sweep.config().stop.regret_bound) return "";
  return sweep::RegretMonitor(open.sweep).look_at(open.study->variants(), open.study->trials()).text() + "\n";
}

std::optional<std::string> show_all(const sweep::OpenSweep& open, const review::RunsListRequest& given,
                                    const review::RunsContext& context, core::Diagnostics& diagnostics) {
  review::RunsListRequest request = given;
  std::optional<query::Filter> filter;
  if (!request.filter.empty()) {
    filter = query::Filter::parse(request.filter, diagnostics);
    if (!filter) return std::nullopt;
  }
  auto rows = review::trials_as_runs(open);
  if (!review::select_runs(rows, request, filter, context, diagnostics)) return std::nullopt;
  if (request.columns.empty()) request.columns = review::trial_columns(open);
  if (request.format != "text") return review::list_text(std::move(rows), request, request.columns, context);
  const std::string heading = review::sweep_heading(open) + regret_line(open);
  if (rows.empty())
    return heading + (filter ? "no trial matches " + core::quote(request.filter) : "no trials yet") + "\n";
  return heading + review::list_text(std::move(rows), request, request.columns, context);
}

void add_line(const std::string& name, const std::string& value, std::string& text) {
  if (value.empty()) return;
  text +=
      "  " + name + std::string(name.size() < 10 ? 10 - name.size() : 1, ' ') + core::escape_for_terminal(value) + "\n";
}

/// The seed that the variant sets, otherwise the recipe's plus the number of the replicate.
std::string seed_text(const sweep::OpenSweep& open, const Trial& trial) {
  const sweep::Variant& variant = open.study->variants()[static_cast<std::size_t>(trial.variant)];
  for (const sweep::Assignment& one : open.sweep.space().assignments(variant.point)) {
    if (one.path == "seed") return one.value.scalar_text();
  }
  return std::to_string(open.sweep.base().at("seed").as_integer() + trial.replicate);
}

std::optional<std::string> show_one(const sweep::OpenSweep& open, std::int64_t number,
                                    const review::RunsContext& context, core::Diagnostics& diagnostics) {
  const std::vector<Trial> trials = open.study->trials_snapshot();
  if (number < 0 || number >= static_cast<std::int64_t>(trials.size())) {
    diagnostics.error({}, "sweep " + open.study->info().name + " has no trial " + std::to_string(number),
                      trials.empty() ? "" : "trials are 0 to " + std::to_string(trials.size() - 1));
    return std::nullopt;
  }
  const Trial& trial = trials[static_cast<std::size_t>(number)];
  std::string text = open.study->info().name + " trial " + std::to_string(number) + "\n";
  add_line("state", std::string(to_text(trial.state)), text);
  if (trial.value) {
    add_line(open.sweep.metric(), sweep::short_number(*trial.value) + " at step " + std::to_string(trial.step), text);
  }
  for (std::size_t i = 0; i < trial.others.size(); ++i) {
    add_line(open.sweep.objectives()[i + 1].name, sweep::short_number(trial.others[i]), text);
  }
  add_line("variant",
           std::to_string(trial.variant) + "  " + open.study->variants()[static_cast<std::size_t>(trial.variant)].text,
           text);
  add_line("seed", seed_text(open, trial), text);
  add_line("reason", trial.reason, text);
  if (trial.retries > 0) add_line("retries", std::to_string(trial.retries), text);
  if (trial.started_ms > 0) add_line("began", store::utc_text(trial.started_ms), text);
  if (trial.ended_ms > 0)
    add_line("took", core::format_duration(static_cast<double>(trial.ended_ms - trial.started_ms) / 1000), text);
  add_line("run", trial.run, text);
  chart::Curve curve;
  for (const store::SeriesPoint& point : open.study->curve(number))
    curve.points.emplace_back(static_cast<double>(point.step), point.value);
  if (curve.points.size() > 1) {
    text += "\n" + open.sweep.metric() + "\n" +
            review::plot_text({curve}, review::plot_options(context.terminal), context.terminal);
  }
  if (!trial.run.empty()) text += "\n  show the run  roux runs show " + trial.run + "\n";
  return text;
}

std::optional<std::string> answer(const sweep::OpenSweep& open, const SweepShowRequest& request,
                                  const review::RunsContext& context, core::Diagnostics& diagnostics) {
  if (request.watch) {
    review::watch_sweep(open, context);
    return "";
  }
  if (!request.trial) return show_all(open, request.list, context, diagnostics);
  if (request.list.format == "text" && request.list.filter.empty())
    return show_one(open, *request.trial, context, diagnostics);
  diagnostics.error({}, "--filter and --format apply to a list of trials, but TRIAL names one",
                    "write --filter 'trial == " + std::to_string(*request.trial) + "' instead");
  return std::nullopt;
}

}  // namespace

void add_sweep_show(Command sweep, Session& session) {
  const auto request = std::make_shared<SweepShowRequest>();
  Command command = sweep.add_subcommand("show", "Show a sweep: progress, best variant, trials");
  add_sweep_name(command, request->sweep);
  command.add_option("TRIAL", request->trial, "Number of a trial to show in detail")
      .in_range(std::int64_t{0}, std::int64_t{1'000'000'000});
  add_list_flags(command, session, request->list, "trials");
  command.add_flag("--watch", request->watch, "Keep updating until the sweep is over");
  command.footer(
      "\nExamples:\n"
      "  roux sweep show\n"
      "  roux sweep show tiny-gpt --filter 'state == complete and optimizer.lr > 1e-3' --sort val/loss --limit 5\n"
      "  roux sweep show last --columns trial,val/loss,duration --format csv\n"
      "  roux sweep show last 3\n"
      "  roux sweep show last --watch\n");
  on_sweep_call<SweepShowRequest>(command, session, request, answer);
}

}  // namespace runner::cli
