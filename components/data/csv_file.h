#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/location.h"

namespace components::data {

/// What is wrong with the records of one file, told at the recipe's place of its path. A file with one mistake in every
/// row would bury everything else, so only the first kShownMax are told, and then how many more there are.
class RecordErrors {
 public:
  RecordErrors(runner::core::Diagnostics& diagnostics, runner::core::Location place, std::string path);
  ~RecordErrors();
  RecordErrors(const RecordErrors&) = delete;
  RecordErrors& operator=(const RecordErrors&) = delete;

  /// `path:line: message`; line 0 stands for the file as a whole.
  void add(std::int64_t line, const std::string& message, const std::string& hint = "");
  bool any() const { return count_ > 0; }

  static constexpr std::int64_t kShownMax = 5;

 private:
  runner::core::Diagnostics& diagnostics_;
  runner::core::Location place_;
  std::string path_;
  std::int64_t count_ = 0;
};

struct CsvRow {
  std::int64_t line = 0;  ///< where the row begins in the file, from 1
  std::vector<std::string> fields;
};

/// A CSV file as text: every row has as many fields as there are columns.
struct CsvFile {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
};

struct CsvOptions {
  char delimiter = ',';
  bool header = true;  ///< false: the columns are called `1`, `2`, ...
};

/// Reads RFC 4180 with LF, CRLF or CR between rows and an optional byte-order mark; blank lines are passed over, blanks
/// around unquoted fields dropped. What is wrong (missing, empty, binary, an open quote, a row that is too short or too
/// long, a column twice) goes to `errors`; then the result is not to be used.
CsvFile read_csv(const std::string& path, const CsvOptions& options, RecordErrors& errors);

/// The hint for a header that was read as one column but looks like several; "" when it does not.
std::string other_delimiter_hint(const std::vector<std::string>& columns);

}  // namespace components::data
