#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/location.h"

namespace components::data {

/// Collects the errors in the records of one file and reports them at the location of its path in the recipe. Each
/// message is shown once; then the number of further records, as a file may have one in every row. Of kShownMax records
/// the place is told.
class RecordErrors {
 public:
  RecordErrors(runner::core::Diagnostics& diagnostics, runner::core::Location location, std::string path);
  ~RecordErrors();
  RecordErrors(const RecordErrors&) = delete;
  RecordErrors& operator=(const RecordErrors&) = delete;

  /// `path:line: message`; line 0 stands for the file as a whole.
  void add(std::int64_t line, const std::string& message, const std::string& hint = "");
  bool any() const { return !told_.empty(); }
  /// Whether further records need not be looked at: a compressed file may hold millions of wrong ones.
  bool enough() const { return others_ >= kCountedMax; }

  static constexpr std::size_t kShownMax = 10;
  static constexpr std::int64_t kCountedMax = 100'000;

 private:
  runner::core::Diagnostics& diagnostics_;
  runner::core::Location location_;
  std::string path_;
  std::vector<std::string> told_;  ///< messages
  std::int64_t others_ = 0;
  std::vector<std::int64_t> other_lines_;  ///< of the first of them
};

struct CsvRow {
  std::int64_t line = 0;    ///< where the row begins in the file, from 1
  std::int64_t number = 0;  ///< among the rows of the file, from 1; the header is not counted
  std::vector<std::string> fields;
};

/// A CSV file as text in UTF-8: every row has as many fields as there are columns.
struct CsvFile {
  char decimal = '.';  ///< of numbers
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
};

enum class CsvEncoding { kUtf8, kLatin1, kWindows1252 };

struct CsvOptions {
  char delimiter = ',';
  bool header = true;  ///< false: the columns are called `1`, `2`, ...
  char decimal = '.';
  CsvEncoding encoding = CsvEncoding::kUtf8;
};

/// Reads RFC 4180 with LF, CRLF or CR between rows and an optional byte-order mark; skips blank lines, Excel's first
/// line `sep=;` where it names the delimiter, and strips blanks around unquoted fields. Errors (missing, empty or
/// binary file, bytes of another encoding, an open quote, a row that is too short or too long, a duplicate column) go
/// to `errors`; then do not use the result.
CsvFile read_csv(const std::string& path, const CsvOptions& options, RecordErrors& errors);

/// The hint for a header that was read as one column but looks like several; "" when it does not.
std::string other_delimiter_hint(const std::vector<std::string>& columns);

}  // namespace components::data
