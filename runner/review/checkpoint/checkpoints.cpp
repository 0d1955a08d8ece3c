#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/manifest.h"
#include "runner/core/units.h"
#include "runner/core/utf8.h"
#include "runner/review/checkpoint/checkpoints.h"
#include "runner/store/run_reader.h"

namespace runner::review {
namespace {

namespace fs = std::filesystem;

std::string name_of(const std::string& path) { return core::printable(fs::path(path).filename().string()); }

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
    text +=
        terminal::painted("damaged", terminal::Paint::kRed, terminal) + ": " + core::printable(failure.message) + "\n";
  }
  return text.empty() ? "there is no checkpoint in " + core::printable(folder) + "\n" : text;
}

CheckpointsVerdict checkpoints_verify(const std::string& folder) {
  CheckpointsVerdict verdict;
  const auto judge = [&](const std::string& path) {
    const core::Result<artifact::Manifest> manifest = artifact::verify_checkpoint(path);
    if (manifest) {
      const std::size_t files = manifest.value().files.size();
      verdict.text += name_of(path) + ": intact, " + std::to_string(files) + (files == 1 ? " file, " : " files, ") +
                      core::format_bytes(artifact::bytes_of(manifest.value())) + "\n";
      ++verdict.whole;
    } else {
      verdict.text += name_of(path) + ": damaged: " + core::printable(manifest.failure().message) + "\n";
      ++verdict.damaged;
    }
  };
  for (const artifact::CheckpointInfo& info : readable(folder)) judge(info.path);
  for (const auto& [path, failure] : unreadable(folder)) judge(path);
  return verdict;
}

}  // namespace runner::review
