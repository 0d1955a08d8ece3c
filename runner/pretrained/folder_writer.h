#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/io.h"
#include "runner/core/result.h"
#include "runner/pretrained/folder_mark.h"

namespace runner::pretrained {

/// A tensor to write. Its content is where `bytes` says, or else made as its file is written.
struct WrittenTensor {
  artifact::TensorBytes bytes;
  std::function<std::vector<char>()> make = nullptr;
};

/// Writes a folder that appears whole or not at all, with a mark of what it holds. What roux wrote before is replaced
/// as one: a process that is killed at any point leaves the old folder or the new one. Where the file system cannot
/// exchange folders the old one gets another name first, which is logged. Without finish() nothing is left of it.
class FolderWriter {
 public:
  struct Options {
    std::string folder;
    bool force = false;                     ///< a folder with a mark, and nothing that it does not list, is replaced
    std::int64_t bytes = 0;                 ///< of the tensors, for the check of free space
    std::vector<std::string> sources = {};  ///< files and folders that are read, which may not lie in it; "": none
  };
  /// Errors  RunError (exit status 2): the folder holds something and is not to be replaced, or is the current one, a
  /// mount point, one of a run's or around what is read; no room.
  explicit FolderWriter(const Options& options, artifact::Io& io = artifact::system_io());
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  /// `name`: of a file, or FOLDER/FILE for one in a folder below.
  void write_text(const std::string& name, const std::string& text);
  /// One file of tensors.
  void write_tensors(const std::string& name, const std::vector<WrittenTensor>& tensors,
                     const std::vector<std::pair<std::string, std::string>>& metadata = {{"format", "pt"}});
  /// model.safetensors, or shards of at most that size with their index.
  void write_model(const std::vector<WrittenTensor>& tensors, std::int64_t shard_bytes_max);
  /// Whether there was such a file in the folder.
  bool copy(const std::string& folder, const std::string& name);
  /// The tokenizer's files of a folder of Transformers, with its chat template; their names.
  std::vector<std::string> copy_tokenizer(const std::string& folder);
  bool has(const std::string& name) const;
  /// The names of all files, sorted.
  std::vector<std::string> finish();

 private:
  class Lock;

  void check_place(const Options& options) const;
  void check_content(const Options& options);
  void make_draft();
  void remove_draft();
  void remove_leftover(const std::string& folder, std::int64_t process);
  void write_mark(bool is_draft);
  void replace();
  /// Where a file is drafted; its folder is there.
  std::string drafted(const std::string& name);

  artifact::Io& io_;
  std::string target_, draft_;
  std::vector<artifact::FileEntry> files_;
  std::set<std::string> folders_;       ///< below the folder
  std::optional<FolderMark> replaced_;  ///< of what is there
  std::unique_ptr<Lock> lock_;          ///< while it lives the draft is no leftover
};

/// Failure as FolderWriter would refuse to replace the folder, by the names in it alone: before the work begins.
core::Result<void> check_replaceable(const std::string& folder);

/// Whether a folder of Transformers or PEFT has a tokenizer of a kind that roux reads.
bool has_tokenizer(const std::string& folder);

}  // namespace runner::pretrained
