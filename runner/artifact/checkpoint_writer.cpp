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
#include "runner/artifact/joint_save.h"
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

/// The files that this process adds to a draft.
class Files : public CheckpointWriter {
 public:
  Files(Io& io, std::string path, DraftOptions options)
      : io_(io), options_(std::move(options)), path_(std::move(path)) {}

  core::Result<void> add_safetensors(const std::string& file, std::vector<TensorBytes> tensors,
                                     const std::vector<std::pair<std::string, std::string>>& metadata) override {
    return add(file, [&] { return write_safetensors(io_, join(path_, file), std::move(tensors), metadata, options_); });
  }

  core::Result<void> add_bytes(const std::string& file, const void* data, std::int64_t bytes) override {
    return add(file, [&] { return write_file(file, data, bytes); });
  }

  void add_pieces(std::vector<PieceSet> pieces) override { pieces_ = std::move(pieces); }

 protected:
  FileEntry write_file(const std::string& file, const void* data, std::int64_t bytes) {
    FileWriter writer(io_, join(path_, file), {bytes, options_.direct, options_.throttle});
    writer.append(data, bytes);
    return writer.finish(file);
  }

  /// Read back from the disk itself, if the page cache can be bypassed.
  void verify_files() {
    for (const FileEntry& file : files_) {
      verify_file(join(path_, file.name), file, {options_.direct, options_.throttle}).value();
    }
  }

  Io& io_;
  const DraftOptions options_;
  const std::string path_;
  std::vector<FileEntry> files_;  // guarded by mutex_ until commit()
  std::vector<PieceSet> pieces_;

 private:
  template <typename Write>
  core::Result<void> add(const std::string& file, const Write& write) {
    if (is_added(file)) return {};
    return attempt([&] {
      try {
        FileEntry entry = write();
        const std::lock_guard<std::mutex> lock(mutex_);
        files_.push_back(std::move(entry));
      } catch (...) {
        // The part that was written must not be in the way of the next attempt.
        if (options_.joint != nullptr) (void)attempt([&] { io_.remove_file(join(path_, file)); });
        throw;
      }
    });
  }

  bool is_added(const std::string& file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(files_.begin(), files_.end(), [&file](const FileEntry& one) { return one.name == file; });
  }

  std::mutex mutex_;
};

/// A process's part of a draft that another one commits.
class Part final : public Files {
 public:
  Part(Io& io, const std::string& checkpoints_dir, std::int64_t step, const DraftOptions& options)
      : Files(io, join(checkpoints_dir, draft_name(checkpoint_name(step), options.joint->first)), options) {
    await_draft(path_, *options_.joint);
  }

  core::Result<std::string> commit(ManifestFields, const std::function<std::int64_t()>&, std::int64_t) override {
    return attempt([&]() -> std::string {
      verify_files();
      hand_in(io_, path_, *options_.joint, {files_, pieces_});
      return "";
    });
  }

  void give_up(const core::Failure& failure) override {
    (void)attempt([&] { hand_in_failure(io_, path_, *options_.joint, failure); });
  }
};

class Draft final : public Files {
 public:
  Draft(Io& io, std::string checkpoints_dir, std::int64_t step, const DraftOptions& options)
      : Files(io, join(checkpoints_dir, draft_name(checkpoint_name(step))), options),
        checkpoints_dir_(std::move(checkpoints_dir)),
        step_(step) {
    io_.make_dir(path_);
    if (options_.joint != nullptr) open_draft(io_, path_, *options_.joint);
  }

  ~Draft() override {
    if (committed_) return;
    try {
      remove_tree(io_, path_);
    } catch (...) {
      // The cause of the cleanup is already being reported; the next begin() retries.
    }
  }

  core::Result<std::string> commit(ManifestFields fields, const std::function<std::int64_t()>& metrics_committed,
                                   std::int64_t now_ms) override {
    return attempt([&]() -> std::string {
      if (committed_) {  // only the very last call failed
        io_.sync_dir(checkpoints_dir_);
        return join(checkpoints_dir_, checkpoint_name(step_));
      }
      if (options_.joint == nullptr) io_.sync_dir(path_);
      verify_files();
      if (options_.joint != nullptr && !has_all_) take_shares();
      std::sort(files_.begin(), files_.end(), [](const FileEntry& a, const FileEntry& b) { return a.name < b.name; });
      if (metrics_committed) fields.last_metric_row = metrics_committed();
      fields.step = step_;
      const std::string run_id = fields.run_id;
      write_manifest(
          {pieces_.empty() ? kWholeManifestVersion : kManifestVersion, std::move(fields), now_ms, files_, pieces_});
      return publish(run_id);
    });
  }

 private:
  /// Those of the other processes, which have verified them.
  void take_shares() {
    for (const Share& share : collect_shares(io_, path_, *options_.joint)) {
      for (const FileEntry& file : share.files) {
        check_size(join(path_, file.name), file).value();
        files_.push_back(file);
      }
      artifact::add_pieces(pieces_, share.pieces);
    }
    has_all_ = true;
    io_.sync_dir(path_);
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

  std::string checkpoints_dir_;
  std::int64_t step_;
  bool committed_ = false;
  bool has_all_ = false;  // the shares of the other processes
};

}  // namespace

core::Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::begin(const std::string& checkpoints_dir,
                                                                        std::int64_t step, std::int64_t bytes_needed,
                                                                        Io& io, const DraftOptions& options) {
  return attempt([&]() -> std::unique_ptr<CheckpointWriter> {
    if (options.joint != nullptr && options.joint->process > 0) {
      return std::make_unique<Part>(io, checkpoints_dir, step, options);
    }
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
