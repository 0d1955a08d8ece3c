#include "components/data/csv/csv_file.h"

#include <csv.h>

#include <algorithm>
#include <array>
#include <cstdint>
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

/// Windows-1252 is Latin-1 but for these; 0 where it has no character.
constexpr std::array<std::uint16_t, 32> kWindows1252 = {0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                                        0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
                                                        0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                                        0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

std::string to_utf8(std::string_view text, CsvEncoding encoding) {
  std::string utf8;
  utf8.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    std::uint32_t point = static_cast<unsigned char>(c);
    const bool differs = encoding == CsvEncoding::kWindows1252 && point >= 0x80 && point < 0xA0;
    if (differs && kWindows1252[point - 0x80] != 0) point = kWindows1252[point - 0x80];
    if (point < 0x80) {
      utf8 += static_cast<char>(point);
    } else if (point < 0x800) {
      utf8 += {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
    } else {
      utf8 += {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 0x3F)),
               static_cast<char>(0x80 | (point & 0x3F))};
    }
  }
  return utf8;
}

/// The line of a byte, from 1.
std::int64_t line_of(std::string_view text, std::size_t at) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

/// Whether the file begins with Excel's line `sep=;`, which is taken off; reports one that names another delimiter.
bool take_separator_line(std::string_view& text, char delimiter, RecordErrors& errors) {
  const std::string_view line = next_line(text);
  if (line.size() < 5 || runner::core::lower(std::string(line.substr(0, 4))) != "sep=") return false;
  if (line.find_first_not_of("\r\n", 5) != std::string_view::npos) return false;
  if (line[4] != delimiter) {
    const std::string named = line[4] == '\t' ? "\\t" : std::string(1, line[4]);
    errors.add(1, "the file says that its fields are delimited by " + quote(named), "set delimiter: \"" + named + "\"");
  }
  text.remove_prefix(line.size());
  return true;
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
  const char found = columns[0][columns[0].find_first_of(";\t|,")];
  const std::string named = found == '\t' ? "\\t" : std::string(1, found);
  return "its header is one column, " + quote(columns[0]) + ": set delimiter: \"" + named + "\"";
}

namespace {

void check_widths(const CsvFile& file, bool header, RecordErrors& errors) {
  const std::size_t wanted = file.columns.size();
  const std::string delimiter_hint = other_delimiter_hint(file.columns);
  const std::string whole = header ? "the header has " : "the first row has ";
  // A title or a comment above the table: one field, and then several in every row.
  const auto is_wide = [](const CsvRow& row) { return row.fields.size() > 1; };
  if (wanted == 1 && delimiter_hint.empty() && std::all_of(file.rows.begin(), file.rows.end(), is_wide)) {
    const std::string first = header ? file.columns[0] : file.rows.front().fields[0];
    return errors.add(1, "the first line is " + quote(first) + ", which is not a header for the rows below",
                      "remove the lines above the table");
  }
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
  if (others_ == 0) return;
  std::string lines;
  for (const std::int64_t line : other_lines_) lines += (lines.empty() ? "" : ", ") + std::to_string(line);
  const bool are_all = static_cast<std::int64_t>(other_lines_.size()) == others_;
  if (!lines.empty()) lines = (other_lines_.size() > 1 ? ": lines " : ": line ") + lines + (are_all ? "" : ", ...");
  diagnostics_.error(location_, path_ + ": " + (enough() ? "at least " : "") +
                                    counted_large(others_, "more record is", "more records are") + " wrong" + lines);
}

void RecordErrors::add(std::int64_t line, const std::string& message, const std::string& hint) {
  const bool is_new = std::find(told_.begin(), told_.end(), message) == told_.end();
  const bool is_full = told_.size() + other_lines_.size() == kShownMax;
  if (!is_new || is_full) {
    ++others_;
    if (line > 0 && !is_full) other_lines_.push_back(line);
    return;
  }
  told_.push_back(message);
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
    errors.add(line_of(text, zero), "not a text file: it contains a NUL byte", "save the table as CSV in UTF-8");
    return file;
  }
  std::string converted;
  if (options.encoding != CsvEncoding::kUtf8) {
    text = converted = to_utf8(text, options.encoding);
  } else if (const std::size_t bad = runner::core::find_invalid_utf8(text); bad != std::string_view::npos) {
    errors.add(line_of(text, bad), "the line is not UTF-8",
               "set encoding: windows-1252 or latin-1, or save the table as UTF-8");
    return file;
  }
  const bool has_separator_line = take_separator_line(text, options.delimiter, errors);
  file.decimal = options.decimal;
  file.rows = parse_rows(text, options, errors);
  for (CsvRow& row : file.rows) row.line += has_separator_line ? 1 : 0;
  if (errors.any()) return file;
  if (file.rows.empty()) {
    errors.add(0, "the file has only blank lines");
    return file;
  }
  if (options.header) {
    file.columns = std::move(file.rows.front().fields);
    file.rows.erase(file.rows.begin());
    // A header that ends with a delimiter above rows that do not.
    const std::size_t named = file.columns.size() - 1;
    if (named > 0 && file.columns.back().empty() &&
        std::all_of(file.rows.begin(), file.rows.end(),
                    [named](const CsvRow& row) { return row.fields.size() == named; }))
      file.columns.pop_back();
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
