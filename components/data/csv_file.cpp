#include "components/data/csv_file.h"

#include <csv.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "components/data/text_utils.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::quote;

constexpr std::int64_t kCsvBytesMax = std::int64_t{16} << 30;

struct Reader {
  std::vector<CsvRow> rows;
  CsvRow row;             ///< being read
  std::int64_t line = 0;  ///< being fed
};

void on_field(void* bytes, std::size_t size, void* reader_pointer) {
  auto& reader = *static_cast<Reader*>(reader_pointer);
  reader.row.fields.emplace_back(static_cast<const char*>(bytes), size);
}

void on_row(int, void* reader_pointer) {
  auto& reader = *static_cast<Reader*>(reader_pointer);
  reader.rows.push_back(std::move(reader.row));
  reader.row = {};
}

int is_blank(unsigned char c) { return c == ' '; }

/// Ends with the line break: LF, CRLF or CR.
std::string_view next_line(std::string_view text) {
  const std::size_t end = text.find_first_of("\r\n");
  if (end == std::string_view::npos) return text;
  const bool crlf = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
  return text.substr(0, end + (crlf ? 2 : 1));
}

/// Feeds the parser line by line, so that every row knows where it began.
std::vector<CsvRow> parse_rows(std::string_view text, const CsvOptions& options, RecordErrors& errors) {
  csv_parser parser;
  csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI);
  csv_set_delim(&parser, static_cast<unsigned char>(options.delimiter));
  csv_set_space_func(&parser, is_blank);
  Reader reader;
  std::int64_t row_line = 1;  // first line of the current row
  bool inside_row = false;
  while (!text.empty() && !errors.any()) {
    const std::string_view line = next_line(text);
    ++reader.line;
    const std::size_t rows_before = reader.rows.size();
    if (csv_parse(&parser, line.data(), line.size(), on_field, on_row, &reader) != line.size()) {
      errors.add(reader.line, "a quote inside of a field",
                 "quote the whole field and double the quotes inside: \"say \"\"hello\"\"\"");
    }
    if (reader.rows.size() > rows_before) {
      reader.rows.back().line = row_line;
      inside_row = false;
    } else {
      inside_row = inside_row || line.find_first_not_of(" \r\n") != std::string_view::npos;
    }
    if (!inside_row) row_line = reader.line + 1;
    text.remove_prefix(line.size());
  }
  const std::size_t rows_before = reader.rows.size();
  if (!errors.any() && csv_fini(&parser, on_field, on_row, &reader) != 0) {
    errors.add(row_line, "a quoted field that begins in this row is never closed", "add the closing quote");
  }
  if (reader.rows.size() > rows_before) reader.rows.back().line = row_line;
  csv_free(&parser);
  return std::move(reader.rows);
}

void check_columns(const std::vector<std::string>& columns, RecordErrors& errors) {
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto [at, is_new] = seen.emplace(columns[i], i);
    if (is_new) continue;
    errors.add(1,
               "columns " + std::to_string(at->second + 1) + " and " + std::to_string(i + 1) + " are both called " +
                   quote(columns[i]),
               "give every column a unique name");
  }
}

}  // namespace

std::string other_delimiter_hint(const std::vector<std::string>& columns) {
  if (columns.size() != 1 || columns[0].find_first_of(";\t|,") == std::string::npos) return "";
  return "its header is one column, " + quote(columns[0]) + ": set `delimiter`";
}

namespace {

void check_widths(const CsvFile& file, bool header, RecordErrors& errors) {
  const std::size_t wanted = file.columns.size();
  const std::string delimiter_hint = other_delimiter_hint(file.columns);
  const std::string whole = header ? "the header has " : "the first row has ";
  for (const CsvRow& row : file.rows) {
    const std::size_t got = row.fields.size();
    if (got == wanted) continue;
    std::string message = "the row has " + counted_large(static_cast<std::int64_t>(got), "field", "fields") + ", " +
                          whole + std::to_string(wanted);
    if (got < wanted) {
      message += ": column " + quote(file.columns[got]) + " has no value";
      errors.add(row.line, message, "leave an empty field between two delimiters");
    } else if (!delimiter_hint.empty()) {
      return errors.add(row.line, message, delimiter_hint);  // same cause in every row
    } else {
      errors.add(row.line, message, "quote a field that contains the delimiter");
    }
  }
}

}  // namespace

RecordErrors::RecordErrors(runner::core::Diagnostics& diagnostics, runner::core::Location location, std::string path)
    : diagnostics_(diagnostics), location_(std::move(location)), path_(std::move(path)) {}

RecordErrors::~RecordErrors() {
  const std::int64_t more = count_ - kShownMax;
  if (more <= 0) return;
  diagnostics_.error(location_, path_ + ": " + counted_large(more, "more record is", "more records are") + " wrong");
}

void RecordErrors::add(std::int64_t line, const std::string& message, const std::string& hint) {
  if (++count_ > kShownMax) return;
  diagnostics_.error(location_, path_ + ":" + (line > 0 ? std::to_string(line) + ":" : "") + " " + message, hint);
}

CsvFile read_csv(const std::string& path, const CsvOptions& options, RecordErrors& errors) {
  CsvFile file;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    errors.add(0, "file not found", missing_file_hint(path));
    return file;
  }
  const auto read = runner::core::read_file(path, kCsvBytesMax);
  if (!read) {
    errors.add(0, read.failure().message, read.failure().hint);
    return file;
  }
  std::string_view text = read.value();
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  if (text.empty()) {
    errors.add(0, "the file is empty");
    return file;
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    errors.add(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n'),
               "not a text file: it contains a NUL byte", "save the table as CSV in UTF-8");
    return file;
  }
  file.rows = parse_rows(text, options, errors);
  if (errors.any()) return file;
  if (file.rows.empty()) {
    errors.add(0, "the file has only blank lines");
    return file;
  }
  if (options.header) {
    file.columns = std::move(file.rows.front().fields);
    file.rows.erase(file.rows.begin());
    check_columns(file.columns, errors);
    if (file.rows.empty()) errors.add(0, "the file has a header and no row");
  } else {
    for (std::size_t i = 0; i < file.rows.front().fields.size(); ++i) file.columns.push_back(std::to_string(i + 1));
  }
  std::int64_t number = 0;
  for (CsvRow& row : file.rows) row.number = ++number;
  check_widths(file, options.header, errors);
  return file;
}

}  // namespace components::data
