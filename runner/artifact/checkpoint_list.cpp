#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/draft_names.h"
#include "runner/artifact/file_check.h"
#include "runner/artifact/manifest.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/parallel.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadersMax = 2;  // one computes while the other waits for the disk

/// Visible folders, no links; by name.
std::vector<std::string> folders_in(const std::string& checkpoints_dir) {
  std::vector<std::string> paths;
  std::error_code error;
  const std::vector<std::string> names_there = core::list_folder(checkpoints_dir).value();
  for (const std::string& name : names_there) {
    const fs::path path = fs::path(checkpoints_dir) / name;
    if (name.front() == '.' || fs::is_symlink(path, error) || !fs::is_directory(path, error)) continue;
    paths.push_back(path.string());
  }
  return paths;
}

/// Links by a checkpoint's name. They are never followed: rotation must not delete their targets.
std::vector<std::string> links_in(const std::string& checkpoints_dir) {
  std::vector<std::string> paths;
  std::error_code error;
  const std::vector<std::string> names_there = core::list_folder(checkpoints_dir).value();
  for (const std::string& name : names_there) {
    const fs::path path = fs::path(checkpoints_dir) / name;
    if (is_checkpoint_name(name) && fs::is_symlink(path, error)) paths.push_back(path.string());
  }
  return paths;
}

bool has_manifest(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::path(path) / kManifestFile, error);
}

core::Result<void> refuse_extra_files(const std::string& path, const Manifest& manifest) {
  std::set<std::string> known = {kManifestFile, kPinnedFile};
  for (const FileEntry& file : manifest.files) known.insert(file.name);
  const core::Result<std::vector<std::string>> names = core::list_folder(path);
  if (!names) return names.failure();
  for (const std::string& name : names.value()) {
    if (name.front() == '.' || known.contains(name)) continue;
    return core::Failure{(fs::path(path) / name).string() + " is not in the checkpoint's manifest",
                         "move it out of the folder: a checkpoint is exactly what was saved"};
  }
  return {};
}

/// Best guess for a checkpoint with an unreadable manifest.
std::string last_part(const std::string& path) { return fs::path(path).filename().string(); }

/// State of a newer version of roux, in a folder that verifies: an older one may be resumable.
core::Result<void> refuse_later_state(const std::string& path, const std::vector<FileEntry>& files) {
  const auto is_state = [](const FileEntry& file) { return file.name == kTrainerFile; };
  if (std::none_of(files.begin(), files.end(), is_state)) return {};
  const std::string file = (fs::path(path) / kTrainerFile).string();
  const core::Result<std::string> text = core::read_file(file, kTrainerBytesMax);
  if (!text) return text.failure();
  const core::Result<core::Node> state = core::parse_json(text.value());
  if (!state) return {};  // undamaged, so it was written like that: loading reports what is missing
  return refuse_later_trainer(state.value(), file);
}

}  // namespace

std::vector<CheckpointInfo> list_checkpoints(const std::string& checkpoints_dir) {
  std::vector<CheckpointInfo> found;
  for (const std::string& path : folders_in(checkpoints_dir)) {
    if (!has_manifest(path)) continue;
    core::Result<Manifest> manifest = read_manifest(path);
    if (!manifest) continue;
    const std::int64_t step = manifest.value().fields.step;
    found.push_back({path, step, std::move(manifest).value()});
  }
  std::sort(found.begin(), found.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return std::tie(a.manifest.fields.branch, a.step, a.manifest.fields.last_metric_row, a.path) <
           std::tie(b.manifest.fields.branch, b.step, b.manifest.fields.last_metric_row, b.path);
  });
  return found;
}

std::vector<std::pair<std::string, core::Failure>> list_damaged(const std::string& checkpoints_dir) {
  std::vector<std::pair<std::string, core::Failure>> damaged;
  for (const std::string& path : links_in(checkpoints_dir)) {
    damaged.emplace_back(path, core::Failure{path + " is a link, not the folder of a checkpoint",
                                             "move the folder back, or give its target to --checkpoint"});
  }
  for (const std::string& path : folders_in(checkpoints_dir)) {
    if (!has_manifest(path)) {
      if (is_checkpoint_name(last_part(path))) {
        damaged.emplace_back(path, core::Failure{path + " holds no " + kManifestFile, ""});
      }
      continue;
    }
    core::Result<Manifest> manifest = read_manifest(path);
    if (!manifest) damaged.emplace_back(path, manifest.failure());
  }
  return damaged;
}

bool is_pinned(const std::string& path) {
  // A folder that cannot be read may be pinned.
  std::error_code error;
  return fs::exists(fs::path(path) / kPinnedFile, error) || error;
}

std::int64_t bytes_of(const Manifest& manifest) {
  std::int64_t bytes = 0;
  for (const FileEntry& file : manifest.files) bytes += file.bytes;
  return bytes;
}

core::Result<void> check_sizes(const std::string& path, const Manifest& manifest) {
  for (const FileEntry& file : manifest.files) {
    const core::Result<void> same = check_size((fs::path(path) / file.name).string(), file);
    if (!same) return same;
  }
  return refuse_extra_files(path, manifest);
}

core::Result<Manifest> verify_checkpoint(const std::string& path, bool from_disk) {
  return verify_checkpoint(path, [from_disk](const std::string& file, const FileEntry& recorded) {
    return verify_file(file, recorded, {.from_disk = from_disk});
  });
}

core::Result<Manifest> verify_checkpoint(const std::string& path, const FileCheck& check) {
  core::Result<Manifest> manifest = read_manifest(path);
  if (!manifest) return manifest;
  const core::Result<void> expected = refuse_extra_files(path, manifest.value());
  if (!expected) return expected.failure();
  const std::vector<FileEntry>& files = manifest.value().files;
  std::vector<core::Result<void>> verdicts(files.size());
  core::in_parallel(files.size(), kReadersMax,
                    [&](std::size_t i) { verdicts[i] = check((fs::path(path) / files[i].name).string(), files[i]); });
  for (const core::Result<void>& verdict : verdicts) {
    if (!verdict) return verdict.failure();
  }
  const core::Result<void> readable = refuse_later_state(path, files);
  if (!readable) return readable.failure();
  return manifest;
}

std::optional<CheckpointInfo> newest_verified(const std::string& checkpoints_dir, std::vector<std::string>& skipped,
                                              const std::string& run_id) {
  std::vector<CheckpointInfo> all = list_checkpoints(checkpoints_dir);
  std::vector<std::string> reasons;
  std::optional<CheckpointInfo> newest;
  while (!all.empty() && !newest) {
    const std::string& owner = all.back().manifest.fields.run_id;
    if (!run_id.empty() && owner != run_id) {
      reasons.push_back(all.back().path + " belongs to run " + owner + ", not to this one");
    } else if (const core::Result<Manifest> manifest = verify_checkpoint(all.back().path); !manifest) {
      reasons.push_back(manifest.failure().message);
    } else {
      newest = std::move(all.back());
    }
    all.pop_back();
  }
  // Without a readable manifest there is no recorded order; the name is the best guess.
  const std::string newest_name = newest ? last_part(newest->path) : "";
  for (const auto& [path, failure] : list_damaged(checkpoints_dir)) {
    if (last_part(path) > newest_name) skipped.push_back(failure.message);
  }
  skipped.insert(skipped.end(), reasons.begin(), reasons.end());
  return newest;
}

}  // namespace runner::artifact
