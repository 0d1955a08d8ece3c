#include <algorithm>
#include <filesystem>
#include <map>

#include "runner/core/text/text.h"
#include "runner/transfer/import.h"
#include "trackers/io/event_file.h"

namespace runner::transfer {
namespace {

namespace fs = std::filesystem;

bool is_event_file(const fs::path& path) { return path.filename().string().find("tfevents") != std::string::npos; }

/// Event files by the folder that they lie in: TensorBoard takes each such folder for a run.
std::map<std::string, std::vector<std::string>> files_by_folder(const std::string& path) {
  std::map<std::string, std::vector<std::string>> files;
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    if (is_event_file(path)) files[fs::path(path).parent_path().string()].push_back(path);
    return files;
  }
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored) && is_event_file(at->path())) {
      files[at->path().parent_path().string()].push_back(at->path().string());
    }
  }
  for (auto& [folder, names] : files) std::sort(names.begin(), names.end());  // their names hold the time
  return files;
}

ForeignRun to_run(const std::string& folder, trackers::EventFile all) {
  ForeignRun run;
  const fs::path path = fs::absolute(folder.empty() ? "." : folder).lexically_normal();
  run.source = path.string();
  run.name = path.filename().empty() ? path.parent_path().filename().string() : path.filename().string();
  run.tool = "tensorboard";
  for (const auto& scalar : all.scalars) {
    run.series[scalar.tag].push_back({scalar.step, scalar.time_ms, scalar.value});
  }
  for (auto& text : all.texts) run.texts.push_back({text.tag, std::move(text.text), text.step, text.time_ms});
  run.parameters = std::move(all.hparams);
  if (!all.damage.empty()) run.problems.push_back(all.damage);
  if (all.left_out > 0) {
    run.problems.push_back(folder + ": " + core::counted(all.left_out, "value", "values") +
                           " skipped: images, histograms and other tensors are not imported");
  }
  return run;
}

}  // namespace

core::Result<std::vector<ForeignRun>> read_tensorboard(const std::string& path) {
  std::vector<ForeignRun> runs;
  std::vector<core::Failure> unreadable;
  for (const auto& [folder, files] : files_by_folder(path)) {
    trackers::EventFile all;
    std::size_t bad = 0;
    for (const std::string& file : files) {
      const auto read = trackers::read_event_file(file, all);
      if (read) continue;
      unreadable.push_back(read.failure());
      ++bad;
    }
    if (bad < files.size()) runs.push_back(to_run(folder, std::move(all)));
  }
  // One file that a crash or a copy spoiled does not keep the others out.
  if (runs.empty() && !unreadable.empty()) return unreadable.front();
  for (const core::Failure& failure : unreadable) runs.front().problems.push_back(failure.message);
  return runs;
}

}  // namespace runner::transfer
