#include <algorithm>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/draft_names.h"
#include "runner/artifact/file_check.h"
#include "runner/artifact/file_writer.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/retention.h"
#include "runner/artifact/safetensors_writer.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/units.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

std::string join(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

class Draft final : public CheckpointWriter {
 public:
  Draft(Io& io, std::string checkpoints_dir, std::int64_t step, const DraftOptions& options)
      : io_(io),
        options_(options),
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
      // The cause of the cleanup is already being reported; the next begin() retries.
    }
  }

  core::Result<void> add_safetensors(const std::string& file, std::vector<TensorBytes> tensors,
                                     const std::vector<std::pair<std::string, std::string>>& metadata) override {
    return attempt([&] { note(write_safetensors(io_, join(path_, file), std::move(tensors), metadata, options_)); });
  }

  core::Result<void> add_bytes(const std::string& file, const void* data, std::int64_t bytes) override {
    return attempt([&] { note(write_file(file, data, bytes)); });
  }

  core::Result<std::string> commit(ManifestFields fields, const std::function<std::int64_t()>& metrics_committed,
                                   std::int64_t now_ms) override {
    return attempt([&]() -> std::string {
      if (committed_) {  // only the very last call failed
        io_.sync_dir(checkpoints_dir_);
        return join(checkpoints_dir_, checkpoint_name(step_));
      }
      io_.sync_dir(path_);
      std::sort(files_.begin(), files_.end(), [](const FileEntry& a, const FileEntry& b) { return a.name < b.name; });
      // Read back from the disk itself, if the page cache can be bypassed.
      for (const FileEntry& file : files_) {
        verify_file(join(path_, file.name), file, {options_.direct, options_.throttle}).value();
      }
      if (metrics_committed) fields.last_metric_row = metrics_committed();
      fields.step = step_;
      const std::string run_id = fields.run_id;
      write_manifest({kManifestVersion, std::move(fields), now_ms, files_});
      return publish(run_id);
    });
  }

 private:
  FileEntry write_file(const std::string& file, const void* data, std::int64_t bytes) {
    FileWriter writer(io_, join(path_, file), {bytes, options_.direct, options_.throttle});
    writer.append(data, bytes);
    return writer.finish(file);
  }

  void note(FileEntry entry) {
    const std::lock_guard<std::mutex> lock(mutex_);
    files_.push_back(std::move(entry));
  }

  void write_manifest(const Manifest& manifest) {
    const std::string text = manifest_text(manifest);
    std::error_code error;
    if (fs::exists(join(path_, kManifestFile), error))
      io_.remove_file(join(path_, kManifestFile));  // of an earlier attempt
    const FileEntry entry = write_file(kManifestFile, text.data(), static_cast<std::int64_t>(text.size()));
    verify_file(join(path_, kManifestFile), entry).value();
    read_manifest(path_).value();
    io_.sync_dir(path_);
  }

  /// The commit. The previous folder of that name stays restorable until the new one has it.
  std::string publish(const std::string& run_id) {
    const std::string target = join(checkpoints_dir_, checkpoint_name(step_));
    bool swapped = false;
    std::string aside;
    std::error_code error;
    if (fs::exists(fs::symlink_status(target, error))) {
      const core::Result<Manifest> there = read_manifest(target);
      // A link was made on purpose, and its target is outside of this folder.
      const bool ours = there.ok() && there.value().fields.run_id == run_id && !fs::is_symlink(target, error);
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
    // The old one of this step; if deleting fails the next save retries.
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
  const DraftOptions options_;
  std::string checkpoints_dir_;
  std::int64_t step_;
  std::string path_;
  std::mutex mutex_;
  std::vector<FileEntry> files_;  // guarded by mutex_ until commit()
  bool committed_ = false;
};

}  // namespace

core::Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::begin(const std::string& checkpoints_dir,
                                                                        std::int64_t step, std::int64_t bytes_needed,
                                                                        Io& io, const DraftOptions& options) {
  return attempt([&]() -> std::unique_ptr<CheckpointWriter> {
    make_dirs(io, checkpoints_dir);
    remove_leftovers(checkpoints_dir, io);
    const std::int64_t free_bytes = io.free_bytes(checkpoints_dir);
    if (free_bytes < bytes_needed) {
      throw core::RunError(
          "a checkpoint takes " + core::format_bytes(bytes_needed) + ", but " + checkpoints_dir + " has " +
              core::format_bytes(free_bytes) + " left",
          "free some space there, or lower checkpoint.save_total_limit, then run the same command again",
          core::kExitResumable);
    }
    return std::make_unique<Draft>(io, checkpoints_dir, step, options);
  });
}

}  // namespace runner::artifact
