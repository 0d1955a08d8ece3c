#include "components/data/csv/csv_rows.h"

#include <csv.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::LineSource;
using runner::core::Node;
using runner::core::RunError;

constexpr std::string_view kMark = "\xEF\xBB\xBF";

std::string_view without_packing(std::string_view path) {
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (path.ends_with(ending)) path.remove_suffix(ending.size());
  }
  return path;
}

int is_blank(unsigned char c) { return c == ' '; }

}  // namespace

bool is_csv_path(std::string_view path) {
  const std::string_view plain = without_packing(path);
  return plain.ends_with(".csv") || plain.ends_with(".tsv");
}

/// libcsv, which is fed line by line.
class CsvRows::Parser {
 public:
  explicit Parser(char delimiter) {
    csv_init(&parser_, 0);
    csv_set_delim(&parser_, static_cast<unsigned char>(delimiter));
    csv_set_space_func(&parser_, is_blank);
  }
  ~Parser() { csv_free(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  void feed(std::string_view line) {
    is_whole_ = false;
    for (const std::string_view text : {line, std::string_view("\n")})
      csv_parse(&parser_, text.data(), text.size(), on_field, on_row, this);
  }
  bool is_whole() const { return is_whole_; }  ///< whether the line that was fed ends a row
  std::vector<std::string> take() { return std::exchange(fields_, {}); }

 private:
  static void on_field(void* bytes, std::size_t size, void* self) {
    static_cast<Parser*>(self)->fields_.emplace_back(static_cast<const char*>(bytes), size);
  }
  static void on_row(int, void* self) { static_cast<Parser*>(self)->is_whole_ = true; }

  csv_parser parser_;
  std::vector<std::string> fields_;
  bool is_whole_ = false;
};

CsvRows::CsvRows(const std::string& path, const Place& start) : path_(path) {
  source_ = std::make_unique<LineSource>(path);
  read_header();
  if (start.offset > source_->end().offset) source_ = std::make_unique<LineSource>(path, start);
}
CsvRows::~CsvRows() = default;

void CsvRows::fail(std::int64_t line, const std::string& what) const {
  throw RunError(path_ + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what);
}

void CsvRows::read_header() {
  std::optional<std::string_view> line = source_->next();
  if (line && line->starts_with(kMark)) line->remove_prefix(kMark.size());
  if (!line || line->find_first_not_of(" \r") == std::string_view::npos) fail(1, "the header is missing");
  const bool is_tsv = without_packing(path_).ends_with(".tsv");
  char delimiter = is_tsv ? '\t' : ',';
  if (!is_tsv && line->find(',') == std::string_view::npos) {
    const std::size_t other = line->find_first_of(";\t");
    if (other != std::string_view::npos) delimiter = (*line)[other];
  }
  parser_ = std::make_unique<Parser>(delimiter);
  if (runner::core::find_invalid_utf8(*line) != std::string_view::npos) fail(1, "the line is not UTF-8");
  parser_->feed(*line);
  if (!parser_->is_whole()) fail(1, "the header is not one line of names");
  columns_ = parser_->take();
  for (auto name = columns_.begin(); name != columns_.end(); ++name) {
    if (name->empty()) fail(1, "a column has no name");
    if (std::find(columns_.begin(), name, *name) != name)
      fail(1, "two columns are called " + runner::core::quote(*name));
  }
}

bool CsvRows::read_row() {
  bool is_inside = false;
  while (const std::optional<std::string_view> line = source_->next()) {
    if (!is_inside) number_ = source_->number();
    if (runner::core::find_invalid_utf8(*line) != std::string_view::npos) fail(source_->number(), "not UTF-8");
    parser_->feed(*line);
    if (parser_->is_whole()) return true;
    is_inside = is_inside || line->find_first_not_of(" \r") != std::string_view::npos;
  }
  if (!source_->problem().empty()) fail(source_->problem_line(), source_->problem());
  if (is_inside) fail(number_, "a quoted field that begins in this row is never closed");
  return false;
}

std::optional<std::string_view> CsvRows::next() {
  if (!read_row()) return std::nullopt;
  const std::vector<std::string> fields = parser_->take();
  if (fields.size() != columns_.size()) {
    fail(number_, "the row has " + runner::core::counted(std::ssize(fields), "field", "fields") + ", the header " +
                      std::to_string(columns_.size()));
  }
  Node record = Node::mapping();
  for (std::size_t i = 0; i < fields.size(); ++i)
    record.set(columns_[i], fields[i].empty() ? Node() : Node::string(fields[i]));
  record_ = to_json(record, -1);
  return record_;
}

CsvRows::Place CsvRows::end() const { return source_->end(); }

}  // namespace components::data
