#include "runner/artifact/checkpoint_name.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/artifact/draft_names.h"
#include "runner/core/error.h"
#include "runner/core/text/suggest.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

using core::Failure;

constexpr std::size_t kNamesShown = 12;

std::string name_of(const CheckpointInfo& info) { return fs::path(info.path).filename().string(); }

Failure none(const RunCheckpoints& run, const std::string& what, const std::vector<CheckpointInfo>& all) {
  if (all.empty()) {
    return {"there is no checkpoint in " + run.folder, "train it first, or give the path of a checkpoint folder",
            core::kExitUsage};
  }
  std::vector<std::string> names;
  for (const CheckpointInfo& info : all) names.push_back(name_of(info));
  const std::string near = core::closest(what, names);
  std::string list;
  const std::size_t first = all.size() > kNamesShown ? all.size() - kNamesShown : 0;
  for (std::size_t i = first; i < names.size(); ++i) list += (list.empty() ? "" : ", ") + names[i];
  return {"there is no checkpoint \"" + what + "\" in " + run.folder,
          (near.empty() ? "" : "did you mean " + near + "? ") +
              ("there are " + std::string(first > 0 ? "..., " : "") + list + "; last and best are names too"),
          core::kExitUsage};
}

std::optional<std::int64_t> as_step(const std::string& name) {
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

}  // namespace

RunCheckpoints checkpoints_of(const std::string& run_dir, const std::string& run_id, const core::Node& resolved) {
  RunCheckpoints run;
  run.run_id = run_id;
  run.folder = (fs::path(run_dir) / "checkpoints").string();
  const core::Node* monitor = resolved.at_path("checkpoint.monitor");
  const core::Node* mode = resolved.at_path("checkpoint.mode");
  if (monitor != nullptr && monitor->is_string()) run.monitor = monitor->as_string();
  const core::Node* keep_best = resolved.at_path("checkpoint.keep_best");
  if (keep_best != nullptr && keep_best->is_integer()) run.keep_best = keep_best->as_integer();
  run.smaller_is_better = mode == nullptr || !mode->is_string() || mode->as_string() != "max";
  return run;
}

std::optional<CheckpointInfo> best_checkpoint(const RunCheckpoints& run) {
  std::optional<CheckpointInfo> best;
  double best_value = 0;
  for (CheckpointInfo& info : list_checkpoints(run.folder)) {
    const core::Node* value = info.manifest.fields.metrics.find(run.monitor);
    if (value == nullptr || !value->is_number()) continue;
    const double v = value->as_double();
    if (best && !(run.smaller_is_better ? v < best_value : v > best_value)) continue;
    best = std::move(info);
    best_value = v;
  }
  return best;
}

core::Result<std::string> find_checkpoint(const RunCheckpoints& run, const std::string& name,
                                          std::vector<std::string>& skipped) {
  if (name == "last") {
    const auto newest = newest_verified(run.folder, skipped, run.run_id);
    if (newest) return newest->path;
    if (skipped.empty()) return none(run, name, {});
    return Failure{"no checkpoint in " + run.folder + " is intact: " + skipped.front(), "", core::kExitFailed};
  }
  if (name == "best") {
    if (run.monitor.empty()) {
      return Failure{"there is no best checkpoint in " + run.folder + ": the run's recipe has no checkpoint.monitor",
                     "use the last one, or name one by its step", core::kExitUsage};
    }
    const auto best = best_checkpoint(run);
    if (best) return best->path;
    return Failure{"no checkpoint in " + run.folder + " was saved with " + run.monitor + ", so there is no best one",
                   "use the last one, or name one by its step", core::kExitUsage};
  }
  const std::vector<CheckpointInfo> all = list_checkpoints(run.folder);
  const std::optional<std::int64_t> step = as_step(name);
  const std::string wanted = step ? checkpoint_name(*step) : name;
  for (const CheckpointInfo& info : all) {
    if (name_of(info) == wanted) return info.path;
  }
  // A named one with an unreadable manifest: the reason is more useful than the names of the others.
  for (const auto& [path, failure] : list_damaged(run.folder)) {
    if (fs::path(path).filename().string() == wanted) return failure;
  }
  return none(run, name, all);
}

core::Result<std::string> find_checkpoint(
    const std::string& text, const std::function<core::Result<RunCheckpoints>(const std::string&)>& find_run,
    std::vector<std::string>& skipped) {
  std::error_code error;
  const std::size_t colon = text.rfind(':');
  // A run folder means that run: it has no tensors itself. One without checkpoints may lack their folder.
  const bool is_run_folder =
      fs::is_directory(fs::path(text) / "checkpoints", error) || fs::exists(fs::path(text) / "run.db", error);
  if (fs::exists(text, error) && !is_run_folder) return text;
  const std::string name = colon == std::string::npos ? "last" : text.substr(colon + 1);
  const auto run = find_run(text.substr(0, colon));
  if (!run) {
    // Text that looks like a path is one.
    if ((text.find('/') != std::string::npos || text.ends_with(".safetensors")) && colon == std::string::npos) {
      return Failure{"file not found: " + text, "give a checkpoint folder, or RUN:best, RUN:last, RUN:step-000500",
                     core::kExitUsage};
    }
    return Failure{run.failure().message, run.failure().hint, core::kExitUsage};
  }
  return find_checkpoint(run.value(), name, skipped);
}

}  // namespace runner::artifact
