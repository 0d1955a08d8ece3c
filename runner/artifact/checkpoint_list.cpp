#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/file_writer.h"
#include "runner/artifact/manifest.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

/// Visible folders, no links, that hold a manifest.json; by name.
std::vector<std::string> candidates(const std::string& checkpoints_dir) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints_dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.' || entry.is_symlink(error) || !entry.is_directory(error)) continue;
    if (fs::exists(entry.path() / kManifestFile, error)) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Best guess of a checkpoint whose manifest cannot say it.
std::string last_part(const std::string& path) { return fs::path(path).filename().string(); }

}  // namespace

std::vector<CheckpointInfo> list_checkpoints(const std::string& checkpoints_dir) {
  std::vector<CheckpointInfo> found;
  for (const std::string& path : candidates(checkpoints_dir)) {
    core::Result<Manifest> manifest = read_manifest(path);
    if (!manifest) continue;
    const std::int64_t step = manifest.value().fields.step;
    found.push_back({path, step, std::move(manifest).value()});
  }
  std::sort(found.begin(), found.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return std::tie(a.manifest.fields.branch, a.step, a.manifest.created_ms, a.path) <
           std::tie(b.manifest.fields.branch, b.step, b.manifest.created_ms, b.path);
  });
  return found;
}

std::vector<std::pair<std::string, core::Failure>> list_damaged(const std::string& checkpoints_dir) {
  std::vector<std::pair<std::string, core::Failure>> damaged;
  for (const std::string& path : candidates(checkpoints_dir)) {
    core::Result<Manifest> manifest = read_manifest(path);
    if (!manifest) damaged.emplace_back(path, manifest.failure());
  }
  return damaged;
}

bool is_pinned(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::path(path) / kPinnedFile, error);
}

core::Result<Manifest> verify_checkpoint(const std::string& path) {
  core::Result<Manifest> manifest = read_manifest(path);
  if (!manifest) return manifest;
  for (const FileEntry& file : manifest.value().files) {
    const core::Result<void> same = verify_file((fs::path(path) / file.name).string(), file);
    if (!same) return same.failure();
  }
  return manifest;
}

std::optional<CheckpointInfo> newest_verified(const std::string& checkpoints_dir, std::vector<std::string>& skipped) {
  std::vector<CheckpointInfo> all = list_checkpoints(checkpoints_dir);
  std::vector<std::string> reasons;
  std::optional<CheckpointInfo> newest;
  while (!all.empty() && !newest) {
    const core::Result<Manifest> manifest = verify_checkpoint(all.back().path);
    if (manifest) {
      newest = std::move(all.back());
    } else {
      reasons.push_back(manifest.failure().message);
    }
    all.pop_back();
  }
  // What has no readable manifest has no recorded place in the order; its name is the best guess.
  const std::string newest_name = newest ? last_part(newest->path) : "";
  for (const auto& [path, failure] : list_damaged(checkpoints_dir)) {
    if (last_part(path) > newest_name) skipped.push_back(failure.message);
  }
  skipped.insert(skipped.end(), reasons.begin(), reasons.end());
  return newest;
}

}  // namespace runner::artifact
