#include "runner/transfer/import.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include "runner/core/platform/parallel.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/store/annotations.h"
#include "runner/store/run_writer.h"

namespace runner::transfer {
namespace {

namespace fs = std::filesystem;

using core::Node;

constexpr const char* kTag = "imported";
constexpr std::size_t kNameMax = 80;
constexpr std::size_t kWritersMax = 16;  ///< runs written at once: each waits for the disk most of its time

/// The time at which the other tool wrote: so a reimported run keeps its times.
class Replay final : public core::Clock {
 public:
  explicit Replay(const core::Clock& clock) : clock_(clock), now_ms_(clock.wall_ms()) {}
  std::int64_t wall_ms() const override { return now_ms_; }
  std::int64_t monotonic_ns() const override { return clock_.monotonic_ns(); }
  void set(std::int64_t now_ms) {
    if (now_ms > 0) now_ms_ = now_ms;
  }

 private:
  const core::Clock& clock_;
  std::atomic<std::int64_t> now_ms_;  // the writer's thread reads it too
};

/// A run_name is a part of a folder's name.
std::string folder_name(const std::string& text) {
  std::string name;
  for (const char c : text.substr(0, kNameMax)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    name += plain ? c : '-';
  }
  while (!name.empty() && (name.front() == '.' || name.front() == '-')) name.erase(0, 1);
  return name.empty() ? "imported" : name;
}

Node recipe_of(const ForeignRun& run, const std::string& name) {
  Node recipe = Node::mapping();
  recipe.set("run_name", Node::string(name));
  if (!run.parameters.entries().empty()) recipe.set("params", run.parameters);
  return recipe;
}

Node origin_of(const ForeignRun& run) {
  Node origin = Node::mapping();
  origin.set(store::kImportedFrom, Node::string(run.source));
  origin.set("imported_by", Node::string(run.tool));
  return origin;
}

store::RunStatus status_of(const std::string& text) {
  if (text == "failed") return store::RunStatus::kFailed;
  return text == "stopped" ? store::RunStatus::kStopped : store::RunStatus::kFinished;
}

/// All points by time, and those of one time by step.
struct Moment {
  std::int64_t time_ms, step;
  store::MetricValue value;
};

std::vector<Moment> moments_of(const ForeignRun& run, store::RunWriter& writer) {
  std::vector<Moment> moments;
  for (const auto& [name, points] : run.series) {
    const store::MetricId id = writer.metric(name);
    for (const ForeignRun::Point& point : points) moments.push_back({point.time_ms, point.step, {id, point.value}});
  }
  std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    return std::pair(a.time_ms, a.step) < std::pair(b.time_ms, b.step);
  });
  return moments;
}

core::Result<std::string> write_run(const ForeignRun& run, const review::RunsContext& context,
                                    const std::string& name) {
  Replay clock(context.clock);
  store::NewRun made;
  made.output_dir = context.output_dir;
  made.run_name = folder_name(name);
  made.resolved_json = core::to_json(recipe_of(run, name));
  made.command_line = {"roux", "runs", "import", run.source};
  made.created_ms = run.began_ms;
  auto created = store::RunWriter::create(made, clock);
  if (!created) return created.failure();
  store::RunWriter& writer = *created.value();
  clock.set(run.began_ms);
  writer.event("import", 0, origin_of(run));
  for (const Moment& moment : moments_of(run, writer)) {
    clock.set(moment.time_ms);
    writer.log(moment.step, {&moment.value, 1});
  }
  for (const ForeignRun::Text& text : run.texts) {
    Node data = Node::mapping();
    data.set("name", Node::string(text.name));
    data.set("text", Node::string(text.text));
    clock.set(text.time_ms);
    writer.event("text", text.step, std::move(data));
  }
  writer.set_summary(origin_of(run));
  clock.set(run.ended_ms);
  writer.finish(status_of(run.status), "imported from " + run.tool);
  std::vector<std::string> tags = {kTag};
  for (const std::string& tag : run.tags) {
    const bool one_line =
        std::none_of(tag.begin(), tag.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (!tag.empty() && one_line && core::find_invalid_utf8(tag) == std::string::npos) tags.push_back(tag);
  }
  store::add_tags(writer.run_dir(), tags);
  if (!run.note.empty()) store::add_note(writer.run_dir(), clock.wall_ms(), run.note);
  if (name != made.run_name) store::set_label(writer.run_dir(), core::escape_for_terminal(name));
  return writer.run_id();
}

/// Reads a path of any supported tool.
std::vector<ForeignRun> read_path(const std::string& path, core::Diagnostics& diagnostics) {
  if (path.starts_with("http://") || path.starts_with("https://")) {
    auto runs = read_mlflow_server(path);
    if (runs) return std::move(runs).value();
    diagnostics.error({}, runs.failure().message, runs.failure().hint);
    return {};
  }
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    diagnostics.error({}, path + " not found");
    return {};
  }
  for (const auto read : {read_mlflow, read_tensorboard, read_metrics_csv}) {
    auto runs = read(path);
    if (!runs) {
      diagnostics.error({}, runs.failure().message, runs.failure().hint);
      return {};
    }
    if (!runs.value().empty()) return std::move(runs).value();
  }
  diagnostics.error(
      {}, path + " has nothing to import",
      "event files of TensorBoard, a folder mlruns or the address of MLflow, or a .csv file with a column "
      "\"step\"");
  return {};
}

std::set<std::string> imported_before(const review::RunsContext& context) {
  std::set<std::string> sources;
  for (const store::RunSummary& run : store::list_runs(context.output_dir, context.clock, {.with_recipe = false})) {
    if (const Node* source = run.summary.find(store::kImportedFrom)) sources.insert(source->scalar_text());
  }
  return sources;
}

/// When it began and ended, where the tool did not say: as its points do.
void settle_times(ForeignRun& run) {
  for (const auto& [name, points] : run.series) {
    for (const ForeignRun::Point& point : points) {
      if (point.time_ms <= 0) continue;
      if (run.began_ms <= 0 || point.time_ms < run.began_ms) run.began_ms = point.time_ms;
      run.ended_ms = std::max(run.ended_ms, point.time_ms);
    }
  }
}

}  // namespace

std::optional<std::string> runs_import(const review::RunsContext& context, const RunsImportRequest& request,
                                       core::Diagnostics& diagnostics) {
  std::vector<ForeignRun> found;
  for (const std::string& path : request.paths) {
    for (ForeignRun& run : read_path(path, diagnostics)) found.push_back(std::move(run));
  }
  if (diagnostics.has_errors()) return std::nullopt;
  const std::set<std::string> before = request.again ? std::set<std::string>() : imported_before(context);
  const auto name_of = [&request](const ForeignRun& run) { return request.name.empty() ? run.name : request.name; };
  std::vector<std::optional<core::Result<std::string>>> made(found.size());
  core::in_parallel(found.size(), kWritersMax, [&](std::size_t i) {
    if (before.contains(found[i].source)) return;
    settle_times(found[i]);
    made[i] = write_run(found[i], context, name_of(found[i]));
  });
  std::string text;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const ForeignRun& run = found[i];
    const std::string source = core::escape_for_terminal(run.source), name = name_of(run);
    if (!made[i]) {
      text += source + ": imported before; --again imports it as a new run\n";
      continue;
    }
    const core::Result<std::string>& id = *made[i];
    if (!id) {
      diagnostics.error({}, id.failure().message, id.failure().hint);
      continue;
    }
    std::size_t points = 0;
    for (const auto& [series, values] : run.series) points += values.size();
    text += id.value() + "  " + core::escape_for_terminal(name) + ": " +
            core::counted(static_cast<std::int64_t>(run.series.size()), "metric", "metrics") + ", " +
            core::counted(static_cast<std::int64_t>(points), "point", "points") + " from " + source + "\n";
    for (const std::string& problem : run.problems) diagnostics.warning({}, problem);
  }
  return text;
}

}  // namespace runner::transfer
