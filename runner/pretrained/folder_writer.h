#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/io.h"

namespace runner::pretrained {

/// A tensor to write. Its content is where `bytes` says, or else made as its file is written.
struct WrittenTensor {
  artifact::TensorBytes bytes;
  std::function<std::vector<char>()> make = nullptr;
};

/// Writes a folder that appears whole or not at all; into one that exists the files are moved one by one. Without
/// finish() nothing is left of it.
class FolderWriter {
 public:
  struct Options {
    std::string folder;
    bool force = false;      ///< a folder that is not empty is written to: files of the same names are replaced
    std::int64_t bytes = 0;  ///< of the tensors, for the check of free space
  };
  /// Errors  RunError: the folder exists, or is one of a run's (exit status 2), no room.
  explicit FolderWriter(const Options& options);
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  /// `name`: of a file, or FOLDER/FILE for one in a folder below.
  void write_text(const std::string& name, const std::string& text);
  /// One file of tensors.
  void write_tensors(const std::string& name, const std::vector<WrittenTensor>& tensors);
  /// model.safetensors, or shards of at most that size with their index. Model files of another cut go.
  void write_model(const std::vector<WrittenTensor>& tensors, std::int64_t shard_bytes_max);
  /// Whether there was such a file in the folder.
  bool copy(const std::string& folder, const std::string& name);
  /// The tokenizer's files of a folder of Transformers, with its chat template; their names.
  std::vector<std::string> copy_tokenizer(const std::string& folder);
  bool has(const std::string& name) const;
  /// The names of all files, sorted.
  std::vector<std::string> finish();

 private:
  void open(const Options& options);
  /// Where a file is drafted; its folder is there.
  std::string drafted(const std::string& name);

  artifact::Io& io_ = artifact::system_io();
  std::string target_, draft_;
  std::vector<std::string> files_;
  std::set<std::string> folders_;  ///< below the folder
  bool wrote_model_ = false;
};

/// Whether a folder of Transformers or PEFT has a tokenizer of a kind that roux reads.
bool has_tokenizer(const std::string& folder);

}  // namespace runner::pretrained
