#include "components/data/record/record_source.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "components/data/csv/conll_rows.h"
#include "components/data/csv/csv_rows.h"
#include "components/data/fields/unread_fields.h"
#include "components/data/label/squad_file.h"
#include "components/data/record/array_records.h"
#include "components/data/text_utils.h"
#include "runner/core/error.h"
#include "runner/core/node.h"
#include "runner/core/packed/packed_file.h"
#include "runner/core/platform/byte_source.h"
#include "runner/core/table/table_file.h"

namespace components::data {
namespace {

using runner::core::LineSource;
using runner::core::RunError;
using runner::core::TableFile;
using runner::core::TableRows;

/// Of unread text between two records, from which on the file is opened again behind it; the same of rows.
constexpr std::int64_t kGapMax = 1 << 20, kRowGapMax = 4096;

class Lines final : public RecordSource {
 public:
  Lines(const std::string& path, const Place& start) : path_(path), source_(path, start) {}

  std::optional<std::string_view> next() override {
    const std::optional<std::string_view> line = source_.next();
    if (line || source_.problem().empty()) return line;
    const std::string number = source_.problem_line() > 0 ? ":" + std::to_string(source_.problem_line()) : "";
    throw RunError(path_ + number + ": " + source_.problem());
  }

  bool is_text() const override { return false; }
  std::int64_t number() const override { return source_.number(); }
  Place end() const override { return source_.end(); }
  std::int64_t bytes() const { return source_.bytes(); }
  bool is_far(std::int64_t offset) const override {
    return !runner::core::is_packed(path_) && offset - source_.end().offset > kGapMax;
  }

 private:
  std::string path_;
  LineSource source_;
};

/// CsvRows or ConllRows.
template <typename Rows>
class ParsedRecords final : public RecordSource {
 public:
  ParsedRecords(const std::string& path, const Place& start) : path_(path), rows_(path, start) {}

  std::optional<std::string_view> next() override { return rows_.next(); }
  bool is_text() const override { return false; }
  std::int64_t number() const override { return rows_.number(); }
  Place end() const override { return rows_.end(); }
  bool is_far(std::int64_t offset) const override {
    return !runner::core::is_packed(path_) && offset - rows_.end().offset > kGapMax;
  }

 private:
  std::string path_;
  Rows rows_;
};

std::unique_ptr<TableFile> open_table(const std::string& path) {
  return runner::core::table_library().value()->open(path, {}).value();
}

bool has_texts_alone(const TableFile& file, const std::string& field) {
  bool has_texts = false;
  for (const runner::core::TableColumn& column : file.columns()) {
    if (column.name == field)
      has_texts = column.is_text;
    else if (may_be_unread(column.name))
      return false;
  }
  return has_texts;
}

class TableRecords final : public RecordSource {
 public:
  TableRecords(const std::string& path, const Place& start, const std::string& text_field)
      : path_(path), file_(open_table(path)), row_(start.offset) {
    if (!text_field.empty() && has_texts_alone(*file_, text_field)) {
      auto beside = std::make_shared<std::vector<std::string>>();
      for (const runner::core::TableColumn& column : file_->columns()) {
        if (column.name != text_field) beside->push_back(column.name);
      }
      left_out_ = std::move(beside);
      file_->choose({text_field}).value();
      has_texts_ = true;
    }
    file_->go_to(row_);
  }

  std::optional<std::string_view> next() override {
    while (rows_ == nullptr || row_ >= rows_->first() + rows_->size()) {
      rows_ = file_->next().value();
      if (rows_ == nullptr) return std::nullopt;
    }
    const std::int64_t at = row_++ - rows_->first();
    std::optional<std::string_view> text = has_texts_ ? rows_->text(at) : std::nullopt;
    is_text_ = text.has_value();
    if (!is_text_) text = as_line(at);
    if (text->size() > LineSource::kLineMax) {
      throw RunError(path_ + ":" + std::to_string(row_) + ": the row is longer than " +
                     with_commas(static_cast<std::int64_t>(LineSource::kLineMax)) + " bytes");
    }
    return text;
  }

  bool is_text() const override { return is_text_; }
  std::shared_ptr<const std::vector<std::string>> left_out() const override { return is_text_ ? left_out_ : nullptr; }
  std::int64_t number() const override { return row_; }
  Place end() const override { return {row_, row_}; }
  bool is_far(std::int64_t offset) const override { return offset - row_ > kRowGapMax; }

 private:
  std::string_view as_line(std::int64_t at) {
    const auto record = rows_->record(at);
    if (!record) throw RunError(path_ + ":" + std::to_string(row_) + ": " + record.failure().message);
    line_ = to_json(record.value(), -1);
    return line_;
  }

  std::string path_;
  std::unique_ptr<TableFile> file_;
  std::int64_t row_;
  bool has_texts_ = false, is_text_ = false;
  std::shared_ptr<const std::vector<std::string>> left_out_;
  std::unique_ptr<TableRows> rows_;  // with row_, or behind those that have it
  std::string line_;
};

/// A place counts questions.
class SquadRecords final : public RecordSource {
 public:
  SquadRecords(const std::string& path, const Place& start) : records_(squad_records(path)), at_(start.offset) {}

  std::optional<std::string_view> next() override {
    if (at_ >= std::ssize(records_)) return std::nullopt;
    return records_[static_cast<std::size_t>(at_++)];
  }
  bool is_text() const override { return false; }
  std::int64_t number() const override { return at_; }
  Place end() const override { return {at_, at_}; }
  bool is_far(std::int64_t) const override { return false; }

 private:
  std::vector<std::string> records_;
  std::int64_t at_;
};

bool is_in_columns(const std::string& path, const RecordFormat& format) {
  return is_conll_path(path) || (format.words && has_columns(path));
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

std::unique_ptr<RecordSource> RecordSource::open(const std::string& path, const Place& start,
                                                 const RecordFormat& format) {
  if (runner::core::is_table_path(path)) return std::make_unique<TableRecords>(path, start, format.text_field);
  if (is_csv_path(path)) return std::make_unique<ParsedRecords<CsvRows>>(path, start);
  if (is_in_columns(path, format)) return std::make_unique<ParsedRecords<ConllRows>>(path, start);
  if (format.arrays && is_json_array(path)) return array_records(path, start);
  if (format.questions && is_squad_file(path)) return std::make_unique<SquadRecords>(path, start);
  return std::make_unique<Lines>(path, start);
}

RecordTotals count_records(const std::string& path, const RecordFormat& format) {
  RecordTotals totals;
  if (runner::core::is_table_path(path)) {
    const auto file = open_table(path);
    totals.records = file->rows();
    for (const runner::core::TableGroup& group : file->groups()) totals.bytes += std::max(group.bytes, group.rows);
    return totals;
  }
  const bool is_array = format.arrays && is_json_array(path);
  if (is_csv_path(path) || is_array || is_in_columns(path, format)) {
    const auto source = RecordSource::open(path, {}, format);
    while (source->next()) ++totals.records;
    totals.bytes = source->end().offset;
    return totals;
  }
  if (format.questions && is_squad_file(path)) {
    for (const std::string& question : squad_records(path)) {
      ++totals.records;
      totals.bytes += std::ssize(question);
    }
    return totals;
  }
  Lines source(path, {});
  while (const std::optional<std::string_view> line = source.next()) totals.records += is_blank(*line) ? 0 : 1;
  totals.bytes = source.bytes();
  return totals;
}

}  // namespace components::data
