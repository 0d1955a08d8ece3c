#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/platform/line_source.h"

namespace components::data {

/// Whether the name ends in `.csv` or `.tsv`, behind it `.gz` or `.zst` or neither.
bool is_csv_path(std::string_view path);

/// The rows of a CSV file with a header, one after the other, as JSON objects: each field is a text under the name of
/// its column, an empty one null. RFC 4180, where a quote inside of a field that does not begin with one is a
/// character, as pandas reads it. In a `.tsv` file tabs delimit; in another `;` or a tab where the header has that and
/// no comma. Blank lines are skipped. RunError names file and line of what cannot be read: no UTF-8, a quote that is
/// never closed, a row with more or fewer fields than the header, a column without a name of its own.
class CsvRows {
 public:
  using Place = runner::core::LineSource::Place;

  CsvRows(const std::string& path, const Place& start);
  ~CsvRows();
  CsvRows(const CsvRows&) = delete;
  CsvRows& operator=(const CsvRows&) = delete;

  /// The next row, until the next call; nothing at the end of the file.
  std::optional<std::string_view> next();
  std::int64_t number() const { return number_; }  ///< the line in which that row begins, from 1
  Place end() const;                               ///< of that row

 private:
  class Parser;

  bool read_row();
  void read_header();
  [[noreturn]] void fail(std::int64_t line, const std::string& what) const;

  std::string path_, record_;
  std::unique_ptr<runner::core::LineSource> source_;
  std::unique_ptr<Parser> parser_;
  std::vector<std::string> columns_;
  std::int64_t number_ = 0;
};

}  // namespace components::data
