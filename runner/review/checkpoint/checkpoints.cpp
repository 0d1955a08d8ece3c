#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/manifest.h"
#include "runner/core/node.h"
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
  for (const artifact::CheckpointInfo& info : readable(folder)) {
    rows.push_back({{name_of(info.path)},
                    {std::to_string(info.step)},
                    {std::to_string(info.manifest.fields.branch)},
                    {core::format_bytes(artifact::bytes_of(info.manifest))},
                    {terminal::ago_text(info.manifest.created_ms, now_ms)},
                    {artifact::is_pinned(info.path) ? "pinned" : ""}});
  }
  std::string text;
  if (!rows.empty()) {
    text = terminal::table_text(
        {{"checkpoint", false, true}, {"step", true}, {"branch", true}, {"size", true}, {"saved"}, {""}}, rows,
        terminal);
  }
  for (const auto& [path, failure] : unreadable(folder)) {
    text += terminal::painted("damaged", terminal::Paint::kRed, terminal) + ": " +
            core::escape_for_terminal(failure.message) + "\n";
  }
  return text.empty() ? "there is no checkpoint in " + core::escape_for_terminal(folder) + "\n" : text;
}

std::string checkpoints_json(const std::string& folder) {
  Node rows = Node::sequence();
  for (const artifact::CheckpointInfo& info : readable(folder)) {
    Node row = row_of(info.path);
    row.set("step", Node::integer(info.step));
    row.set("branch", Node::integer(info.manifest.fields.branch));
    row.set("bytes", Node::integer(artifact::bytes_of(info.manifest)));
    row.set("created_ms", Node::integer(info.manifest.created_ms));
    row.set("pinned", Node::boolean(artifact::is_pinned(info.path)));
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
