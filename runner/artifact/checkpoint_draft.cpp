#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/draft_names.h"
#include "runner/artifact/file_writer.h"
#include "runner/artifact/io.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/core/files.h"
#include "runner/core/log.h"
#include "runner/core/units.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

std::string join(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

/// Like `mkdir -p`, with every new entry made durable.
void make_dirs(Io& io, const fs::path& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  make_dirs(io, path.parent_path());
  io.make_dir(path.string());
  io.sync_dir(path.has_parent_path() ? path.parent_path().string() : ".");
}

void remove_leftovers(Io& io, const std::string& checkpoints_dir) {
  std::error_code error;
  const std::vector<std::string> names_there = core::list_folder(checkpoints_dir).value();
  for (const std::string& name : names_there) {
    const std::string path = join(checkpoints_dir, name);
    if (is_leftover(name) && fs::is_directory(path, error)) remove_tree(io, path);
  }
}

class Draft final : public CheckpointDraft {
 public:
  Draft(Io& io, std::string checkpoints_dir, std::int64_t step)
      : io_(io),
        checkpoints_dir_(std::move(checkpoints_dir)),
        step_(step),
        path_(join(checkpoints_dir_, draft_name(checkpoint_name(step)))) {
    io_.make_dir(path_);
  }

  ~Draft() override {
    if (committed_) return;
    try {
      remove_tree(io_, path_);
    } catch (...) {
      // Why there is something to tidy up is already under way to the user; the next begin() tries again.
    }
  }

  core::Result<void> add_safetensors(const std::string& file, std::vector<TensorBytes> tensors,
                                     const std::vector<std::pair<std::string, std::string>>& metadata) override {
    return attempt([&] {
      sort_for_safetensors(tensors);
      FileWriter writer(io_, join(path_, file));
      const std::string head = safetensors_head(tensors, metadata);
      writer.append(head.data(), static_cast<std::int64_t>(head.size()));
      for (const TensorBytes& tensor : tensors) writer.append(tensor.data, tensor.bytes);
      files_.push_back(writer.finish(file));
    });
  }

  core::Result<void> add_text(const std::string& file, const std::string& content) override {
    return attempt([&] { files_.push_back(write_text(file, content)); });
  }

  core::Result<std::string> commit(ManifestFields fields, const std::function<std::int64_t()>& metrics_committed,
                                   std::int64_t now_ms) override {
    return attempt([&] {
      io_.sync_dir(path_);
      for (const FileEntry& file : files_) verify_file(join(path_, file.name), file).value();
      if (metrics_committed) fields.last_metric_row = metrics_committed();
      fields.step = step_;
      const std::string run_id = fields.run_id;
      write_manifest({kManifestVersion, std::move(fields), now_ms, files_});
      return publish(run_id);
    });
  }

 private:
  FileEntry write_text(const std::string& file, const std::string& content) {
    FileWriter writer(io_, join(path_, file));
    writer.append(content.data(), static_cast<std::int64_t>(content.size()));
    return writer.finish(file);
  }

  void write_manifest(const Manifest& manifest) {
    const FileEntry entry = write_text(kManifestFile, manifest_text(manifest));
    verify_file(join(path_, kManifestFile), entry).value();
    read_manifest(path_).value();
    io_.sync_dir(path_);
  }

  /// The commit. What had the name before stays restorable until the new one has it.
  std::string publish(const std::string& run_id) {
    const std::string target = join(checkpoints_dir_, checkpoint_name(step_));
    bool swapped = false;
    std::string aside;
    std::error_code error;
    if (fs::exists(fs::symlink_status(target, error))) {
      const core::Result<Manifest> there = read_manifest(target);
      const bool ours = there.ok() && there.value().fields.run_id == run_id;
      swapped = ours && !is_pinned(target) && io_.exchange(path_, target);
      if (!swapped) {
        aside = free_name_beside(target);
        io_.rename(target, aside);
        if (ours && !is_pinned(aside)) {
          io_.rename(path_, target);
        } else {
          core::log_warning(target + " was " + (ours ? "pinned" : "no checkpoint of this run") + ": it is now " +
                            aside);
          io_.rename(path_, target);
          aside.clear();
        }
      }
    } else {
      io_.rename(path_, target);
    }
    committed_ = true;
    io_.sync_dir(checkpoints_dir_);
    // The old one of this step; a failure to delete it is the next save's to mend.
    if (swapped) (void)attempt([&] { remove_tree(io_, path_); });
    if (!aside.empty()) (void)attempt([&] { discard(aside); });
    return target;
  }

  void discard(const std::string& path) {
    const std::string gone = join(checkpoints_dir_, deleted_name(fs::path(path).filename().string()));
    io_.rename(path, gone);
    io_.sync_dir(checkpoints_dir_);
    remove_tree(io_, gone);
  }

  static std::string free_name_beside(const std::string& target) {
    std::error_code error;
    for (int number = 1;; ++number) {
      std::string name = target + "-aside-" + std::to_string(number);
      if (!fs::exists(fs::symlink_status(name, error))) return name;
    }
  }

  Io& io_;
  std::string checkpoints_dir_;
  std::int64_t step_;
  std::string path_;
  std::vector<FileEntry> files_;
  bool committed_ = false;
};

}  // namespace

core::Result<std::unique_ptr<CheckpointDraft>> CheckpointDraft::begin(const std::string& checkpoints_dir,
                                                                      std::int64_t step, std::int64_t bytes_needed,
                                                                      Io& io) {
  return attempt([&]() -> std::unique_ptr<CheckpointDraft> {
    make_dirs(io, checkpoints_dir);
    remove_leftovers(io, checkpoints_dir);
    const std::int64_t free_bytes = io.free_bytes(checkpoints_dir);
    if (free_bytes < bytes_needed) {
      throw core::RunError(
          "a checkpoint takes " + core::format_bytes(bytes_needed) + ", but " + checkpoints_dir + " has " +
              core::format_bytes(free_bytes) + " left",
          "free some space there, or lower checkpoint.save_total_limit, then run the same command again",
          core::kExitResumable);
    }
    return std::make_unique<Draft>(io, checkpoints_dir, step);
  });
}

}  // namespace runner::artifact
