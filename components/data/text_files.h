#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "components/data/data.h"
#include "runner/core/result.h"

namespace components::data {

/// A share of something, in percent: [from, to).
struct PercentRange {
  long double from = 0;
  long double to = 100;

  /// The end of percent `p` of `whole`. Ranges that meet at `p` meet here, too, so nothing is lost or repeated.
  static std::int64_t boundary(std::int64_t whole, long double p);
};

/// Parses `:90%`, `90%:`, `10%:20%`. Failure when the range is empty.
runner::core::Result<PercentRange> parse_split(const std::string& text);

/// A file that a recipe names.
struct TextFile {
  std::string path;  ///< As written in the recipe or expanded from its glob.
  /// Unique in its set, however the file is written and wherever the data lie: its path below the folder where its
  /// pattern's first wildcard is, preceded by as many names of that folder as tell the folders of the set apart.
  std::string key;
  std::int64_t bytes = 0;
};

/// The files that `patterns` match and `exclude` does not, in the order of their keys, each once. A missing, unreadable
/// or empty file, or a folder, is reported at its pattern's location; then the result is empty. `kRecords`: a Parquet
/// or Arrow file will do, and a folder of them is its files (table_files()); else both are reported.
enum class FileKind { kBytes, kRecords };
std::vector<TextFile> find_text_files(const std::vector<std::string>& patterns, const std::vector<std::string>& exclude,
                                      FileKind kind, const Inputs& inputs);

std::int64_t total_bytes(const std::vector<TextFile>& files);

/// The files of `range`, in the order of their keys. Selected by the rank of their keys' hashes only.
std::vector<TextFile> split_files(std::vector<TextFile> files, const PercentRange& range);

/// The result of the keys `split` and `split_by`. By files: `files` keeps whole files, and the range is all of them;
/// else the range is the share of their content, and `files` is unchanged. `unit` is the other value of `split_by`, for
/// hints. Empty when an error was reported.
std::optional<PercentRange> apply_split(const std::optional<std::string>& split, bool by_files, const char* unit,
                                        std::vector<TextFile>& files, const Inputs& inputs);

}  // namespace components::data
