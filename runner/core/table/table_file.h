#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::core {

/// A column of a table; a nested one counts once.
struct TableColumn {
  std::string name;
  std::string type;      ///< in Arrow's words: `string`, `list<element: struct<role: string, content: string>>`
  bool is_text = false;  ///< each value is a text or null
};

/// Rows that a file holds together: a row group of Parquet, a record batch of Arrow.
struct TableGroup {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  ///< of all columns: unpacked, as the file says of Parquet; as they lie in the file of Arrow
};

/// What reading a file may take.
struct TableLimits {
  std::int64_t bytes_max = 0;  ///< of memory for rows that are read at once; 0: half of the memory of this machine
  static constexpr std::int64_t kFooterBytesMax = std::int64_t{64} << 20;  ///< what describes a file or a group
  static constexpr std::int64_t kRowsMax = std::int64_t{1} << 40;          ///< of a file
  static constexpr int kDepthMax = 64;                                     ///< of a column's type
  static constexpr std::int64_t kValuesMax = 1'000'000;                    ///< of a row
};

/// Some consecutive rows of a file, in memory.
class TableRows {
 public:
  virtual ~TableRows() = default;
  virtual std::int64_t first() const = 0;  ///< number of the first one in its file, from 0
  virtual std::int64_t size() const = 0;
  /// Row first() + `i` as the mapping that a line of JSONL would be. What is null is not in it, in nested mappings
  /// neither; an item of a list is null there, too. Decimals and integers beyond 64 bits are texts of their digits;
  /// dates, times and time stamps are texts of ISO 8601, those with a time zone in UTC; durations are seconds; bytes
  /// are a text where they are valid UTF-8, else an object {bytes} in base64; maps are lists of pairs. Failure without
  /// a place: too many values.
  virtual Result<Node> record(std::int64_t i) const = 0;
  /// The value of the first column that is read, which is a text; nothing where it is null. Valid while this lives.
  virtual std::optional<std::string_view> text(std::int64_t i) const = 0;
};

/// A file of Parquet or Arrow (IPC file or stream). One thread at a time. Its failures name the file, and the rows
/// where it is damaged.
class TableFile {
 public:
  virtual ~TableFile() = default;
  virtual const std::vector<TableColumn>& columns() const = 0;
  virtual const std::vector<TableGroup>& groups() const = 0;  ///< in their order, from what describes them
  virtual std::int64_t rows() const = 0;
  /// From the next rows on, read these columns alone, in the file's order. Failure: the file has no column of a name.
  virtual Result<void> choose(const std::vector<std::string>& names) = 0;
  /// next() begins with this row, from 0; with rows() there is none.
  virtual void go_to(std::int64_t row) = 0;
  /// The next rows; null behind the last one. After a failure, go_to() is needed.
  virtual Result<std::unique_ptr<TableRows>> next() = 0;
};

/// Interface of libroux_arrow.so, which alone links Arrow's libraries.
class TableLibrary {
 public:
  virtual ~TableLibrary() = default;
  /// Reads what describes the file and checks it; no rows. Failure names the file: it is missing, damaged, encrypted,
  /// no such file, or larger than the limits.
  virtual Result<std::unique_ptr<TableFile>> open(const std::string& path, const TableLimits& limits) = 0;
};

/// Loads libroux_arrow.so on first use. Until then no thread and no memory is Arrow's, so a process that forks others
/// leaves it to them. Failure says where to get Arrow's libraries.
Result<TableLibrary*> table_library();

/// Whether a path names such a file: it ends with .parquet, .arrow or .feather.
bool is_table_path(std::string_view path);

}  // namespace runner::core
