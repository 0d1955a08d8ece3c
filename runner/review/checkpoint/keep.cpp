#include "runner/review/checkpoint/keep.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "runner/artifact/io/io.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/retention.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/review/checkpoint/checkpoints.h"
#include "runner/store/lease.h"

namespace runner::review {
namespace {

namespace fs = std::filesystem;

using core::Failure;
using core::Result;

Failure wrong(const std::string& message, const std::string& hint) { return {message, hint, core::kExitUsage}; }

bool holds_manifest(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / artifact::kManifestFile, error);
}

/// The folder that a word refers to. Follows links, so that the folder itself is renamed.
Result<std::string> path_of(const std::string& text, const std::string& run, const std::string& output_dir) {
  std::error_code error;
  std::vector<std::string> skipped;
  const auto find_run = run_finder(output_dir);
  Result<std::string> found = Failure{};
  if (text.find('/') != std::string::npos || text.find(':') != std::string::npos || fs::exists(text, error)) {
    found = artifact::find_checkpoint(text, find_run, skipped);
  } else {
    const Result<artifact::RunCheckpoints> of_run = find_run(run);
    if (!of_run) return wrong(of_run.failure().message, of_run.failure().hint);
    found = artifact::find_checkpoint(of_run.value(), text, skipped);
    // A checkpoint with a damaged manifest has no step; it can still be named by its folder.
    const fs::path damaged = fs::path(of_run.value().folder) / text;
    if (!found && holds_manifest(damaged)) found = damaged.string();
  }
  if (!found) return wrong(found.failure().message, found.failure().hint);
  const fs::path path = fs::canonical(found.value(), error);
  if (error || !holds_manifest(path)) {
    return wrong(found.value() + " is not a checkpoint: it has no manifest.json", "");
  }
  return path.string();
}

/// Each once, in the order given.
Result<std::vector<std::string>> paths_of(const std::string& output_dir, const KeepRequest& request) {
  std::vector<std::string> paths;
  for (const std::string& text : request.checkpoints) {
    const Result<std::string> path = path_of(text, request.run, output_dir);
    if (!path) return path.failure();
    if (std::find(paths.begin(), paths.end(), path.value()) == paths.end()) paths.push_back(path.value());
  }
  return paths;
}

std::string name_of(const std::string& path) { return core::escape_for_terminal(fs::path(path).filename().string()); }

std::string size_of(const std::string& path) {
  const Result<artifact::Manifest> manifest = artifact::read_manifest(path);
  return manifest ? core::format_bytes(artifact::bytes_of(manifest.value())) : "damaged";
}

/// The metric by which it is the best of its run, such as `val/loss`; "" if it is not.
std::string monitor_if_best(const std::string& path, const std::string& output_dir) {
  const fs::path run_dir = fs::path(path).parent_path().parent_path();
  const Result<artifact::RunCheckpoints> run = run_finder(output_dir)(run_dir.string());
  if (!run || run.value().monitor.empty()) return "";
  const auto best = artifact::best_checkpoint(run.value());
  std::error_code error;
  return best && fs::equivalent(best->path, path, error) ? run.value().monitor : "";
}

/// Failure with the reason when a checkpoint must not be removed.
Result<void> refuse_one(const std::string& path, const core::Clock& clock) {
  const fs::path run_dir = fs::path(path).parent_path().parent_path();
  if (const auto owner = store::live_owner(run_dir.string(), clock)) {
    return wrong(
        name_of(path) + " belongs to a run in use by process " + std::to_string(owner->pid) + " on " + owner->host,
        "checkpoint.save_total_limit makes the run remove old ones itself; stop the run first, or add --force");
  }
  if (artifact::is_pinned(path)) {
    return wrong(name_of(path) + " is pinned", "`roux checkpoints unpin` it first, or add --force");
  }
  if (const auto manifest = artifact::read_manifest(path); !manifest) {
    return wrong(manifest.failure().message, "add --force to remove it anyway");
  }
  return {};
}

/// Failure when a run would be left without a checkpoint to resume from.
Result<void> refuse_last(const std::vector<std::string>& paths) {
  const auto verifies = [](const std::string& path) { return artifact::verify_checkpoint(path).ok(); };
  for (const std::string& path : paths) {
    bool one_stays = false;
    const std::string folder = fs::path(path).parent_path().string();
    for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(folder)) {
      const bool goes = std::find(paths.begin(), paths.end(), info.path) != paths.end();
      one_stays = one_stays || (!goes && verifies(info.path));
    }
    if (one_stays || !verifies(path)) continue;
    return wrong(name_of(path) + " is the only checkpoint that its run can resume from",
                 "add --force to remove it anyway");
  }
  return {};
}

Result<std::string> set_pins(const std::string& output_dir, const KeepRequest& request, bool pinned) {
  const Result<std::vector<std::string>> paths = paths_of(output_dir, request);
  if (!paths) return paths.failure();
  for (const std::string& path : paths.value()) {
    if (const auto manifest = artifact::read_manifest(path); !manifest && pinned) {
      return wrong(manifest.failure().message, "a damaged checkpoint is never removed automatically");
    }
  }
  std::string text;
  for (const std::string& path : paths.value()) {
    const bool already = artifact::is_pinned(path) == pinned;
    const Result<void> done = pinned ? artifact::pin(path) : artifact::unpin(path);
    if (!done) return done.failure();
    const std::string state =
        pinned ? (already ? "already pinned" : "pinned") : (already ? "was not pinned" : "unpinned");
    text += name_of(path) + ": " + state + "\n";
  }
  return text;
}

}  // namespace

Result<std::string> checkpoints_pin(const std::string& output_dir, const KeepRequest& request) {
  return set_pins(output_dir, request, true);
}

Result<std::string> checkpoints_unpin(const std::string& output_dir, const KeepRequest& request) {
  return set_pins(output_dir, request, false);
}

Result<std::string> checkpoints_rm(const std::string& output_dir, const KeepRequest& request, const core::Clock& clock,
                                   const std::function<bool(const std::string&)>& confirm) {
  const Result<std::vector<std::string>> paths = paths_of(output_dir, request);
  if (!paths) return paths.failure();
  std::string list;
  std::vector<std::string> best_by;
  for (const std::string& path : paths.value()) {
    best_by.push_back(monitor_if_best(path, output_dir));
    list += (list.empty() ? "" : ", ") + core::escape_for_terminal(path) + " (" + size_of(path) +
            (best_by.back().empty() ? "" : ", the best by " + best_by.back()) + ")";
    if (request.force) continue;
    if (const Result<void> may = refuse_one(path, clock); !may) return may.failure();
  }
  if (!request.force) {
    if (const Result<void> may = refuse_last(paths.value()); !may) return may.failure();
  }
  if (!request.yes && !confirm("remove " + list + "?")) return std::string("nothing was removed\n");
  std::string text;
  for (std::size_t i = 0; i < paths.value().size(); ++i) {
    const std::string& path = paths.value()[i];
    const std::string size = size_of(path);
    const auto gone = artifact::attempt([&] { artifact::remove_checkpoint(path, !request.force); });
    if (!gone) return gone.failure();
    text +=
        name_of(path) + ": removed, " + size + (best_by[i].empty() ? "" : "; it was the best by " + best_by[i]) + "\n";
  }
  return text;
}

}  // namespace runner::review
