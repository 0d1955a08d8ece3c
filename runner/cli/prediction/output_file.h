#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "runner/artifact/io/output_draft.h"
#include "runner/cli/prediction/work_signals.h"

namespace runner::cli {

/// What a command writes while it works, to a file or to standard output. A regular file appears under its name when it
/// is complete, so that an error, or a signal of end_work_on_signals(), leaves the earlier one as it was.
class OutputFile {
 public:
  /// `path` "" is standard output. RunError when it cannot be written.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// RunError when the disk is full or the reader is gone; so do the others.
  void put(const std::string& text);
  /// Hands on what was put, for who reads along.
  void flush();
  void finish();

 private:
  [[noreturn]] void fail(const std::string& why) const;

  std::string path_;
  std::optional<artifact::OutputDraft> draft_;  ///< of a regular file
  std::optional<DraftGuard> guard_;             ///< of the draft
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> owned_;
  std::FILE* file_ = nullptr;
};

}  // namespace runner::cli
