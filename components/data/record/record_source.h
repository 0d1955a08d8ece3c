#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/platform/line_source.h"

namespace components::data {

/// What a set takes for a record in its files.
struct RecordFormat {
  /// Rows of a table with texts in this column, and without another that may mean something (may_be_unread()), are
  /// these texts; "" for none.
  std::string text_field;
  bool arrays = false;     ///< a file may be an array of records: is_json_array()
  bool questions = false;  ///< a file may have SQuAD's layout: is_squad_file()
  bool words = false;      ///< a file may have columns of words and tags, whatever its name: has_columns()
};

/// The records of a file one after the other, as texts: the lines of a file of JSON lines, the elements of a JSON
/// array, the rows of a Parquet, Arrow or CSV file (csv_rows.h), or sentences (conll_rows.h) as such lines. RunError
/// names file and line of what cannot be read.
class RecordSource {
 public:
  /// Of lines: bytes and lines in front of a place; of rows: rows, twice.
  using Place = runner::core::LineSource::Place;

  /// Reads from `start` on. A table by the name of the file: is_table_path().
  static std::unique_ptr<RecordSource> open(const std::string& path, const Place& start, const RecordFormat& format);

  virtual ~RecordSource() = default;
  /// The next line or row, until the next call; nothing at the end of the file. A line may be blank, which is no
  /// record.
  virtual std::optional<std::string_view> next() = 0;
  virtual bool is_text() const = 0;  ///< it is the text of its `text_field` and not a mapping of JSON
  /// Where is_text(): the columns beside it, which are not read; else null.
  virtual std::shared_ptr<const std::vector<std::string>> left_out() const { return nullptr; }
  virtual std::int64_t number() const = 0;  ///< of it, from 1
  virtual Place end() const = 0;            ///< of it, where the next one begins
  /// Whether it takes less time to open the file at an offset, behind end(), than to read up to it.
  virtual bool is_far(std::int64_t offset) const = 0;
};

/// Of the records of a file, which are counted without being encoded.
struct RecordTotals {
  std::int64_t records = 0;
  std::int64_t bytes = 0;  ///< of text, unpacked, with blank lines; of rows what they take in their file, unpacked
};

/// RunError as RecordSource. Of a Parquet or Arrow file only what describes it is read.
RecordTotals count_records(const std::string& path, const RecordFormat& format);

}  // namespace components::data
