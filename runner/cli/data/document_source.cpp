#include "runner/cli/data/document_source.h"

#include <algorithm>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/platform/line_source.h"
#include "runner/core/table/table_file.h"

namespace runner::cli {
namespace {

constexpr int kDepthMax = 64;
constexpr std::int64_t kValuesMax = 1'000'000;
constexpr const char* kColumnHint = "--column FIELD names the field that holds the text";

class Lines final : public DocumentSource {
 public:
  Lines(const std::string& path, std::string column) : path_(path), column_(std::move(column)), source_(path) {}

  std::optional<std::string_view> next() override {
    line_ = source_.next();
    if (line_ || source_.problem().empty()) return line_;
    const std::int64_t at = source_.problem_line();
    throw core::RunError(path_ + (at > 0 ? ":" + std::to_string(at) : "") + ": " + source_.problem());
  }

  std::optional<core::Result<std::string>> text() const override {
    if (line_->find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
    const auto parsed = core::parse_json(std::string(*line_), {kDepthMax, kValuesMax});
    if (!parsed) return parsed.failure();
    if (!parsed.value().is_mapping()) {
      return core::Failure{"not an object", "a line is an object such as {\"text\": \"...\"}"};
    }
    const core::Node* text = parsed.value().find(column_);
    if (text == nullptr) return core::Failure{column_ + " is missing", kColumnHint};
    if (!text->is_string()) return core::Failure{column_ + " is not a text", kColumnHint};
    return text->as_string();
  }

  std::int64_t number() const override { return source_.number(); }

 private:
  std::string path_, column_;
  core::LineSource source_;
  std::optional<std::string_view> line_;
};

/// Of the column alone: no other one is read.
class Rows final : public DocumentSource {
 public:
  Rows(const std::string& path, const std::string& column) : column_(column), file_(open_table(path)) {
    const auto& columns = file_->columns();
    const auto found =
        std::find_if(columns.begin(), columns.end(), [&](const core::TableColumn& one) { return one.name == column; });
    if (found == columns.end()) throw core::RunError(path + " has no column " + column, kColumnHint);
    if (!found->is_text) {
      throw core::RunError(path + ": its column " + column + " is " + found->type + ", not a text", kColumnHint);
    }
    file_->choose({column}).value();
  }

  std::optional<std::string_view> next() override {
    while (rows_ == nullptr || row_ >= rows_->first() + rows_->size()) {
      rows_ = file_->next().value();
      if (rows_ == nullptr) return std::nullopt;
    }
    text_ = rows_->text(row_++ - rows_->first());
    return text_.value_or("");
  }

  std::optional<core::Result<std::string>> text() const override {
    if (!text_) return core::Failure{column_ + " is null", ""};
    return std::string(*text_);
  }

  std::int64_t number() const override { return row_; }

 private:
  static std::unique_ptr<core::TableFile> open_table(const std::string& path) {
    return core::table_library().value()->open(path, {}).value();
  }

  std::string column_;
  std::unique_ptr<core::TableFile> file_;
  std::unique_ptr<core::TableRows> rows_;
  std::int64_t row_ = 0;
  std::optional<std::string_view> text_;
};

}  // namespace

std::unique_ptr<DocumentSource> DocumentSource::open(const std::string& path, const std::string& column) {
  if (core::is_table_path(path)) return std::make_unique<Rows>(path, column);
  return std::make_unique<Lines>(path, column);
}

}  // namespace runner::cli
