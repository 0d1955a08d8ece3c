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

  /// Where percent `p` of `whole` ends. Two ranges that meet at `p` meet here too, so nothing is lost or seen twice.
  static std::int64_t boundary(std::int64_t whole, long double p);
};

/// Reads `:90%`, `90%:`, `10%:20%`. Failure when the range holds nothing.
runner::core::Result<PercentRange> parse_split(const std::string& text);

/// A file that a recipe names.
struct TextFile {
  std::string path;  ///< As the recipe or its glob gives it.
  std::string key;   ///< The same file has the same key however it is written: relative to the current folder.
  std::int64_t bytes = 0;
};

/// The files that `patterns` match and `exclude` does not, in the order of their keys, each once. What is missing, a
/// folder, unreadable or empty is reported at its pattern's place; then the result is empty.
std::vector<TextFile> find_text_files(const std::vector<std::string>& patterns, const std::vector<std::string>& exclude,
                                      const Inputs& inputs);

std::int64_t total_bytes(const std::vector<TextFile>& files);

/// The files of `range`, in the order of their keys. Which ones is drawn from the keys alone, by rank of their hashes.
std::vector<TextFile> split_files(std::vector<TextFile> files, const PercentRange& range);

/// What the keys `split` and `split_by` leave. By files: `files` keeps whole ones, and the range is all of them; else
/// it is the share of their content, and `files` stays as it is. `unit` is the other value of `split_by`, for hints.
/// Empty when an error was reported.
std::optional<PercentRange> apply_split(const std::optional<std::string>& split, bool by_files, const char* unit,
                                        std::vector<TextFile>& files, const Inputs& inputs);

}  // namespace components::data
