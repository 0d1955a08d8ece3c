#include "runner/review/sweep/studies.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/review/annotate.h"
#include "runner/review/sweep/summary.h"
#include "runner/store/database/text.h"
#include "runner/sweep/studies.h"
#include "runner/sweep/study/postgres_store.h"

namespace runner::review {
namespace {

using core::Node;
using store::RunSummary;

constexpr const char* kRemove = "roux sweep rm";

/// One line of `roux sweep list`.
struct ListedSweep {
  std::string name, state, metric, done, reason;
  std::optional<double> best;
  std::int64_t created_ms = 0;
};

ListedSweep listed(const std::string& folder, const std::string& name) {
  ListedSweep line;
  line.name = name;
  line.created_ms = store::parse_folder_name(name)->created_ms;
  line.state = "unreadable";
  auto study = sweep::Study::open(folder);
  if (!study) return line.reason = study.failure().message, line;
  core::Diagnostics diagnostics;
  const auto sweep = sweep::recorded_sweep(*study.value(), diagnostics);
  if (!sweep) return line.reason = "its recipe is not valid in this version of roux", line;
  sweep::StudyCounters counters(*sweep);
  const SweepProgress progress = progress_of(*sweep, counters.update(*study.value()));
  line.metric = sweep->metric();
  line.done = std::to_string(progress.ended()) + (progress.all ? "/" + std::to_string(*progress.all) : "");
  line.state = study.value()->has_workers() ? "running" : is_finished(*sweep, *study.value()) ? "over" : "stopped";
  if (const auto front = counters.front(); !front.empty()) line.best = front.front().value;
  return line;
}

std::string as_table(const std::vector<ListedSweep>& list, const RunsContext& context) {
  std::vector<std::vector<terminal::Cell>> rows;
  for (const ListedSweep& line : list) {
    const terminal::Paint paint = line.state == "running"   ? terminal::Paint::kCyan
                                  : line.state == "over"    ? terminal::Paint::kGreen
                                  : line.state == "stopped" ? terminal::Paint::kYellow
                                                            : terminal::Paint::kRed;
    rows.push_back({{line.name},
                    {line.state, paint},
                    {line.done},
                    {line.reason.empty() ? line.metric : line.reason},
                    {line.best ? terminal::number_text(*line.best) : ""},
                    {terminal::ago_text(line.created_ms, context.clock.wall_ms())}});
  }
  return terminal::table_text(
      {{"sweep", false, true}, {"state"}, {"done", true}, {"metric", false, true}, {"best", true}, {"age"}}, rows,
      context.terminal);
}

std::string as_json(const std::vector<ListedSweep>& list) {
  Node root = Node::sequence();
  for (const ListedSweep& line : list) {
    Node node = Node::mapping();
    node.set("name", Node::string(line.name));
    node.set("state", Node::string(line.state));
    node.set("done", Node::string(line.done));
    node.set("metric", Node::string(line.metric));
    node.set("best", line.best ? Node::floating(*line.best) : Node::null());
    node.set("created_ms", Node::integer(line.created_ms));
    if (!line.reason.empty()) node.set("reason", Node::string(line.reason));
    root.items().push_back(std::move(node));
  }
  return core::to_json(root) + "\n";
}

/// Folders of the runs of a sweep, `NAME-3`, in its output_dir or in the trash.
std::vector<std::string> runs_of(const std::string& sweep, const std::string& output_dir, const core::Clock& clock) {
  std::vector<std::string> folders;
  for (const RunSummary& run : store::list_runs(output_dir, clock, {.with_recipe = false})) {
    if (!run.name.starts_with(sweep + "-")) continue;
    const std::string number = run.name.substr(sweep.size() + 1);
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos) folders.push_back(run.run_dir);
  }
  return folders;
}

/// Null when `diagnostics` has the reason.
std::unique_ptr<sweep::Study> sweep_called(const std::string& output_dir, const std::string& text,
                                           core::Diagnostics& diagnostics) {
  auto study = sweep::find_study(output_dir, text);
  if (study) return std::move(study).value();
  diagnostics.error({}, study.failure().message, study.failure().hint);
  return nullptr;
}

bool move_sweep(const std::string& name, const std::string& from, const std::string& to,
                core::Diagnostics& diagnostics) {
  core::Result<void> moved = core::make_folders(sweep::sweeps_dir(to));
  const std::string old_place = sweep::sweeps_dir(from) + "/" + name, place = sweep::sweeps_dir(to) + "/" + name;
  if (moved && std::rename(old_place.c_str(), place.c_str()) != 0)
    moved = core::Failure{"cannot move " + old_place + " to " + place + ": " + std::strerror(errno)};
  if (!moved) diagnostics.error({}, moved.failure().message, moved.failure().hint);
  return moved.ok();
}

std::optional<std::string> empty_trash(const RunsContext& context, const SweepRemoveRequest& request,
                                       core::Diagnostics& diagnostics) {
  if (!request.sweep.empty()) {
    diagnostics.error({}, "--empty-trash cannot be combined with SWEEP: it deletes everything in the trash");
    return std::nullopt;
  }
  const std::string trash = trash_dir(context.output_dir);
  const std::vector<std::string> names = sweep::sweep_names(trash).value_or({});
  if (names.empty()) return "no sweeps in the trash of " + context.output_dir + "\n";
  std::vector<std::string> folders;
  for (const std::string& name : names) {
    for (std::string& run : runs_of(name, trash, context.clock)) folders.push_back(std::move(run));
  }
  const std::string what = core::counted(static_cast<std::int64_t>(names.size()), "sweep", "sweeps") + " with " +
                           core::counted(static_cast<std::int64_t>(folders.size()), "run", "runs");
  if (!confirm("permanently delete " + what + " in the trash of " + context.output_dir + "?", request.yes, kRemove,
               diagnostics))
    return diagnostics.has_errors() ? std::nullopt : std::optional<std::string>("nothing was deleted\n");
  for (const std::string& name : names) folders.push_back(sweep::sweeps_dir(trash) + "/" + name);
  for (const std::string& folder : folders) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (!error) continue;
    diagnostics.error({}, "cannot delete " + folder + ": " + error.message());
    return std::nullopt;
  }
  return "deleted " + what + "\n";
}

}  // namespace

std::optional<std::string> sweep_list(const RunsContext& context, const SweepListRequest& request, core::Diagnostics&) {
  const std::string output_dir = request.trash ? trash_dir(context.output_dir) : context.output_dir;
  std::vector<ListedSweep> list;
  for (const std::string& name : sweep::sweep_names(output_dir).value_or({}))
    list.push_back(listed(sweep::sweeps_dir(output_dir) + "/" + name, name));
  if (request.format == "json") return as_json(list);
  if (list.empty()) return "no sweeps in " + output_dir + "\n";
  return as_table(list, context);
}

std::optional<std::string> sweep_remove(const RunsContext& context, const SweepRemoveRequest& request,
                                        core::Diagnostics& diagnostics) {
  if (request.empty_trash) return empty_trash(context, request, diagnostics);
  if (request.sweep.empty()) {
    diagnostics.error({}, std::string(kRemove) + " needs SWEEP, or --empty-trash");
    return std::nullopt;
  }
  auto study = sweep_called(context.output_dir, request.sweep, diagnostics);
  if (study == nullptr) return std::nullopt;
  const std::string name = study->info().name;
  if (study->has_workers()) {
    diagnostics.error({}, "sweep " + name + " has active workers",
                      study->info().store.empty()
                          ? "stop them (Ctrl-C), or wait until the sweep ends"
                          : "stop them (Ctrl-C) on every machine, or wait until the sweep ends; a killed worker "
                            "counts as active until sweep.worker_timeout");
    return std::nullopt;
  }
  const std::string address = study->info().store;
  study.reset();  // before its file moves
  const std::vector<std::string> runs = runs_of(name, context.output_dir, context.clock);
  const std::string what =
      "sweep " + name + " and its " + core::counted(static_cast<std::int64_t>(runs.size()), "run", "runs");
  if (!confirm("move " + what + " to the trash?", request.yes, kRemove, diagnostics))
    return diagnostics.has_errors() ? std::nullopt : std::optional<std::string>("nothing was removed\n");
  if (!runs.empty() && !runs_remove(context, {.runs = runs, .yes = true}, diagnostics)) return std::nullopt;
  if (!move_sweep(name, context.output_dir, trash_dir(context.output_dir), diagnostics)) return std::nullopt;
  return what + ": in the trash; `roux sweep restore " + name + "` brings them back\n" +
         (address.empty() ? ""
                          : "results remain in " + address + "; to delete them run DROP SCHEMA \"" +
                                sweep::PostgresStore::schema_of(name) + "\" CASCADE\n");
}

std::optional<std::string> sweep_restore(const RunsContext& context, const SweepRemoveRequest& request,
                                         core::Diagnostics& diagnostics) {
  const std::string trash = trash_dir(context.output_dir);
  auto study = sweep_called(trash, request.sweep, diagnostics);
  if (study == nullptr) return std::nullopt;
  const std::string name = study->info().name;
  study.reset();  // before its file moves
  if (!move_sweep(name, trash, context.output_dir, diagnostics)) return std::nullopt;
  const std::vector<std::string> runs = runs_of(name, trash, context.clock);
  if (!runs.empty() && !runs_restore(context, {.runs = runs}, diagnostics)) return std::nullopt;
  return "sweep " + name + " and its " + core::counted(static_cast<std::int64_t>(runs.size()), "run", "runs") +
         ": back in " + context.output_dir + "\n";
}

}  // namespace runner::review
