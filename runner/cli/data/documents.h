#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/artifact/io/checksum.h"
#include "runner/cli/data/document_source.h"
#include "runner/core/result.h"

namespace runner::cli {

/// A text, and where it was.
struct Document {
  std::string text;
  std::size_t file = 0;
  std::int64_t line = 0;  ///< from 1; 0: the whole file
};

/// A file as it was when it was opened.
struct FileState {
  std::int64_t bytes = 0, modified_ns = 0;
  bool operator==(const FileState&) const = default;
};
/// Nothing when the file is not there.
std::optional<FileState> state_of(const std::string& path);

/// Whether Documents reads files of this name.
bool is_document_file(const std::string& path);

/// Reads the texts of files one after the other: a `.txt` is one text, a `.jsonl`, compressed or not, one for each line
/// that is not blank, a Parquet or Arrow file one for each row, by the field `column`. RunError names file and line of
/// what is no record, unless such are skipped.
class Documents {
 public:
  /// What was read: all of the files before `file`, and of that one this many lines.
  struct Place {
    std::size_t file = 0;
    std::int64_t line = 0;
    std::string checksum;  ///< of those lines; "" at the beginning of a file
  };

  /// Lines that are no record, and the first of them with its reason.
  struct Skipped {
    std::int64_t lines = 0;
    std::string first;
  };

  Documents(const std::vector<std::string>& files, std::string column, bool skips = false);

  /// Nothing at the end of the last file. After a RunError place() is in front of what is wrong.
  std::optional<Document> next();
  Place place() const;
  const Skipped& skipped() const { return skipped_; }
  /// Goes to a place that an earlier call had. RunError when the lines before it are others now.
  void seek(const Place& place);
  /// Of the files that were opened since the beginning, or were set so.
  const std::vector<FileState>& states() const { return states_; }
  void set_states(std::vector<FileState> states) { states_ = std::move(states); }

 private:
  void open();
  void close();
  std::optional<Document> next_line();
  Document whole_file();
  void note(std::string_view bytes);
  void skip_or_throw(const core::Failure& failure);

  const std::vector<std::string>& files_;
  std::string column_;
  bool skips_;
  Skipped skipped_;
  std::size_t file_ = 0;
  std::int64_t line_ = 0;
  std::unique_ptr<DocumentSource> source_;  // null: the file is not open
  std::unique_ptr<artifact::Checksum> checksum_;
  std::vector<FileState> states_;
};

}  // namespace runner::cli
