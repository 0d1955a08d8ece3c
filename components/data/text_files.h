#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "components/data/data.h"
#include "runner/core/result.h"

namespace components::data {

/// A part of things that stand in an order, such as the records of all files.
class SplitRange {
 public:
  SplitRange() = default;  ///< all of them

  /// Of `whole` things those from begin() to end(), without the latter; begin() is never larger. Shares that meet at a
  /// percentage meet here, too, so nothing is lost or repeated.
  std::int64_t begin(std::int64_t whole) const;
  std::int64_t end(std::int64_t whole) const;
  /// Written in brackets: the order is that of the files, whatever else chooses.
  bool is_slice() const { return is_slice_; }

 private:
  friend runner::core::Result<SplitRange> parse_split(const std::string& text);
  struct Bound {
    double number = 0;
    bool is_percent = true;
  };
  std::int64_t place(const Bound& bound, std::int64_t whole) const;

  Bound from_{0, true}, to_{100, true};
  bool is_slice_ = false;
};

/// Parses `:90%`, `90%:`, `10%:20%`, a share that is rounded down; and `[:5%]`, `[10%:20%]`, `[:1000]`, `[-100:]`, a
/// slice as the `datasets` library has it: percentages are rounded to the nearest, what is negative counts from the
/// end. Failure when the range is empty.
runner::core::Result<SplitRange> parse_split(const std::string& text);

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
std::vector<TextFile> split_files(std::vector<TextFile> files, const SplitRange& range);

/// The result of the keys `split` and `split_by`. By files: `files` keeps whole files, and the range is all of them;
/// else the range is the part of their content, and `files` is unchanged. `unit` is the other value of `split_by`, for
/// hints. Empty when an error was reported.
std::optional<SplitRange> apply_split(const std::optional<std::string>& split, bool by_files, const char* unit,
                                      std::vector<TextFile>& files, const Inputs& inputs);

/// False, with an error, where the range takes none of `lines` lines that are there, such as a slice that begins behind
/// them.
bool takes_lines(const SplitRange& range, std::int64_t lines, const Inputs& inputs);

}  // namespace components::data
