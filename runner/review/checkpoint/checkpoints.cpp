#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/manifest.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/review/checkpoint/checkpoints.h"
#include "runner/store/run_reader.h"

namespace runner::review {
namespace {

namespace fs = std::filesystem;

using core::Node;

std::string name_of(const std::string& path) { return core::escape_for_terminal(fs::path(path).filename().string()); }

bool is_checkpoint(const std::string& folder) {
  std::error_code error;
  return fs::exists(fs::path(folder) / artifact::kManifestFile, error);
}

/// The folder itself when it is one, else those in it.
std::vector<artifact::CheckpointInfo> readable(const std::string& folder) {
  if (!is_checkpoint(folder)) return artifact::list_checkpoints(folder);
  core::Result<artifact::Manifest> manifest = artifact::read_manifest(folder);
  if (!manifest) return {};
  const std::int64_t step = manifest.value().fields.step;
  return {{folder, step, std::move(manifest).value()}};
}

std::vector<std::pair<std::string, core::Failure>> unreadable(const std::string& folder) {
  if (!is_checkpoint(folder)) return artifact::list_damaged(folder);
  core::Result<artifact::Manifest> manifest = artifact::read_manifest(folder);
  if (manifest) return {};
  return {{folder, manifest.failure()}};
}

/// The run whose checkpoints lie in the folder, as far as its recipe tells; without a monitor for any other folder.
artifact::RunCheckpoints run_around(const std::string& folder) {
  const fs::path run_dir = fs::path(folder) / (is_checkpoint(folder) ? "../.." : "..");
  const auto text = core::read_file((run_dir / "resolved.json").string(), std::int64_t{64} << 20);
  if (!text) return {};
  const auto resolved = core::parse_json(text.value());
  return resolved ? artifact::checkpoints_of(run_dir.string(), "", resolved.value()) : artifact::RunCheckpoints{};
}

/// What was measured of the run's monitor when it was saved; nothing without one.
std::optional<double> monitored(const artifact::CheckpointInfo& info, const artifact::RunCheckpoints& run) {
  const Node* value = run.monitor.empty() ? nullptr : info.manifest.fields.metrics.find(run.monitor);
  return value != nullptr && value->is_number() ? std::optional(value->as_double()) : std::nullopt;
}

using Place = std::pair<std::int64_t, std::int64_t>;  // step and branch

Place place_of(const artifact::CheckpointInfo& info) { return {info.step, info.manifest.fields.branch}; }

/// The checkpoints that the run keeps as its best, the best first; of equal ones the earlier, as when saving.
std::vector<Place> best_places(const artifact::RunCheckpoints& run) {
  std::vector<std::pair<double, Place>> found;
  if (run.monitor.empty()) return {};
  for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(run.folder)) {
    const std::optional<double> value = monitored(info, run);
    if (value && !std::isnan(*value)) found.emplace_back(run.smaller_is_better ? *value : -*value, place_of(info));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Place> places;
  for (const auto& [value, place] : found) {
    if (std::ssize(places) < std::max<std::int64_t>(run.keep_best, 1)) places.push_back(place);
  }
  return places;
}

Node row_of(const std::string& path) {
  Node row = Node::mapping();
  row.set("name", Node::string(fs::path(path).filename().string()));
  row.set("path", Node::string(path));
  return row;
}

}  // namespace

core::Result<std::string> checkpoints_folder(const std::string& output_dir, const std::string& run,
                                             const core::Clock& clock) {
  std::error_code error;
  const fs::path inside = fs::path(run) / "checkpoints";
  if (fs::is_directory(inside, error)) return inside.string();
  // A path to a folder that is no run; a bare word is more likely a run's name than a folder here.
  if (run.find('/') != std::string::npos && fs::is_directory(run, error)) return run;
  core::Result<store::RunSummary> found = store::find_run(output_dir, run, clock);
  if (found) return (fs::path(found.value().run_dir) / "checkpoints").string();
  if (fs::is_directory(run, error)) return run;
  return found.failure();
}

std::function<core::Result<artifact::RunCheckpoints>(const std::string&)> run_finder(std::string output_dir) {
  return [output_dir = std::move(output_dir)](const std::string& run) -> core::Result<artifact::RunCheckpoints> {
    const auto found = store::find_run(output_dir, run, core::system_clock());
    if (!found) return found.failure();
    return artifact::checkpoints_of(found.value().run_dir, found.value().id, found.value().resolved);
  };
}

std::string checkpoints_list(const std::string& folder, const terminal::Terminal& terminal, std::int64_t now_ms) {
  std::vector<std::vector<terminal::Cell>> rows;
  const artifact::RunCheckpoints run = run_around(folder);
  const std::vector<Place> best = best_places(run);
  for (const artifact::CheckpointInfo& info : readable(folder)) {
    const auto rank = std::find(best.begin(), best.end(), place_of(info)) - best.begin();
    std::string mark = rank == std::ssize(best) ? "" : rank == 0 ? "best" : "best " + std::to_string(rank + 1);
    if (artifact::is_pinned(info.path)) mark += mark.empty() ? "pinned" : ", pinned";
    std::vector<terminal::Cell> row = {{name_of(info.path)},
                                       {std::to_string(info.step)},
                                       {std::to_string(info.manifest.fields.branch)},
                                       {core::format_bytes(artifact::bytes_of(info.manifest))},
                                       {terminal::ago_text(info.manifest.created_ms, now_ms)}};
    const std::optional<double> value = monitored(info, run);
    if (!run.monitor.empty()) row.push_back({value ? core::short_number(*value, 4) : ""});
    row.push_back({mark});
    rows.push_back(std::move(row));
  }
  std::string text;
  if (!rows.empty()) {
    std::vector<terminal::Column> columns = {
        {"checkpoint", false, true}, {"step", true}, {"branch", true}, {"size", true}, {"saved"}};
    if (!run.monitor.empty()) columns.push_back({core::escape_for_terminal(run.monitor), true});
    columns.push_back({""});
    text = terminal::table_text(columns, rows, terminal);
  }
  for (const auto& [path, failure] : unreadable(folder)) {
    text += terminal::painted("damaged", terminal::Paint::kRed, terminal) + ": " +
            core::escape_for_terminal(failure.message) + "\n";
  }
  return text.empty() ? "there is no checkpoint in " + core::escape_for_terminal(folder) + "\n" : text;
}

std::string checkpoints_json(const std::string& folder) {
  const artifact::RunCheckpoints run = run_around(folder);
  Node rows = Node::sequence();
  for (const artifact::CheckpointInfo& info : readable(folder)) {
    Node row = row_of(info.path);
    row.set("step", Node::integer(info.step));
    row.set("branch", Node::integer(info.manifest.fields.branch));
    row.set("bytes", Node::integer(artifact::bytes_of(info.manifest)));
    row.set("created_ms", Node::integer(info.manifest.created_ms));
    row.set("pinned", Node::boolean(artifact::is_pinned(info.path)));
    if (const auto value = monitored(info, run)) {
      row.set("monitor", Node::string(run.monitor));
      row.set("value", Node::floating(*value));
    }
    rows.items().push_back(std::move(row));
  }
  for (const auto& [path, failure] : unreadable(folder)) {
    Node row = row_of(path);
    row.set("error", Node::string(failure.message));
    rows.items().push_back(std::move(row));
  }
  return core::to_json(rows) + "\n";
}

CheckpointsReport checkpoints_verify(const std::string& folder) {
  CheckpointsReport verdict;
  Node rows = Node::sequence();
  const auto judge = [&](const std::string& path) {
    const core::Result<artifact::Manifest> manifest = artifact::verify_checkpoint(path);
    Node row = row_of(path);
    row.set("intact", Node::boolean(manifest.ok()));
    if (manifest) {
      const auto files = static_cast<std::int64_t>(manifest.value().files.size());
      const std::int64_t bytes = artifact::bytes_of(manifest.value());
      verdict.text += name_of(path) + ": intact, " + core::counted(files, "file", "files") + ", " +
                      core::format_bytes(bytes) + "\n";
      row.set("files", Node::integer(files));
      row.set("bytes", Node::integer(bytes));
      ++verdict.whole;
    } else {
      verdict.text += name_of(path) + ": damaged: " + core::escape_for_terminal(manifest.failure().message) + "\n";
      row.set("error", Node::string(manifest.failure().message));
      ++verdict.damaged;
    }
    rows.items().push_back(std::move(row));
  };
  for (const artifact::CheckpointInfo& info : readable(folder)) judge(info.path);
  for (const auto& [path, failure] : unreadable(folder)) judge(path);
  verdict.json = core::to_json(rows) + "\n";
  return verdict;
}

}  // namespace runner::review
