#include "components/data/csv/conll_rows.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "components/data/text_utils.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/packed/packed_file.h"
#include "runner/core/platform/line_source.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::LineSource;
using runner::core::Node;
using runner::core::RunError;
using Columns = std::vector<std::string_view>;

constexpr std::string_view kMark = "\xEF\xBB\xBF", kBlanks = " \t\r", kDocument = "-DOCSTART-";
constexpr std::size_t kUniversal = 10;     ///< columns of CoNLL-U
constexpr std::int64_t kGapMax = 1 << 20;  ///< see RecordSource::is_far()
constexpr const char* kNoName = "";        ///< of a column that is not read

bool is_blank(std::string_view line) { return line.find_first_not_of(kBlanks) == std::string_view::npos; }

Columns columns_of(std::string_view line) {
  const bool tabs = line.find('\t') != std::string_view::npos;
  const std::string_view between = tabs ? "\t" : " ";
  line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  Columns columns;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find_first_of(between, begin), line.size());
    if (tabs || end > begin) columns.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return columns;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What the columns of a file are called.
std::vector<std::string> names_of(const Columns& first) {
  const std::size_t count = first.size();
  if (count == kUniversal && is_number(first[0].substr(0, first[0].find_first_of("-.")))) {
    return {kNoName, "tokens", "lemmas", "upos", "xpos", kNoName, kNoName, "deprels", kNoName, kNoName};
  }
  if (count == 4) return {"tokens", "pos_tags", "chunk_tags", "ner_tags"};
  std::vector<std::string> names = {"tokens"};
  for (std::size_t i = 1; i + 1 < count; ++i) names.push_back("column" + std::to_string(i + 1));
  if (count > 1) names.emplace_back("tags");
  return names;
}

/// Of a line in front of a sentence: `# id 5f9 domain=train`, `# text = ...`, but not the word `#` with its tag.
bool is_comment(const Columns& columns, std::size_t of_file) {
  if (columns.front() != "#" && !columns.front().starts_with("# ")) return false;
  const auto assigns = [](std::string_view column) { return column.find('=') != std::string_view::npos; };
  return (of_file > 0 && columns.size() != of_file) || std::any_of(columns.begin(), columns.end(), assigns);
}

}  // namespace

ConllRows::ConllRows(const std::string& path, const Place& start) : path_(path), source_(path, start) {
  LineSource first(path);
  while (const std::optional<std::string_view> line = first.next()) {
    if (!take_as_columns(*line, first) || is_comment(columns_, 0) || columns_.front() == kDocument) continue;
    names_ = names_of(columns_);
    if (names_.size() == 1) fail(first.number(), "the line has one column, and a word with its tag is expected");
    return;
  }
  check(first);
}

std::optional<std::string_view> ConllRows::next() {
  Node record = Node::mapping();
  std::size_t size = 0;
  bool is_document = false;
  while (const std::optional<std::string_view> line = source_.next()) {
    if (!take_as_columns(*line, source_)) {
      if (size > 0 && !is_document) break;
      is_document = false;
      continue;
    }
    if (size == 0 && is_comment(columns_, names_.size())) continue;
    if (is_document || columns_.front() == kDocument) {
      is_document = true;
      continue;
    }
    if (size == 0) number_ = source_.number();
    size += line->size() + 1;
    if (size > LineSource::kLineMax) {
      fail(number_, "the sentence that begins here is longer than " +
                        with_commas(static_cast<std::int64_t>(LineSource::kLineMax)) + " bytes: no empty line ends it");
    }
    add(record);
  }
  check(source_);
  if (size == 0) return std::nullopt;
  record_ = to_json(record, -1);
  return record_;
}

/// False for a blank line.
bool ConllRows::take_as_columns(std::string_view line, const LineSource& from) {
  if (from.number() == 1 && line.starts_with(kMark)) line.remove_prefix(kMark.size());
  if (is_blank(line)) return false;
  if (runner::core::find_invalid_utf8(line) != std::string_view::npos) fail(from.number(), "the line is not UTF-8");
  columns_ = columns_of(line);
  return true;
}

void ConllRows::add(Node& record) const {
  if (columns_.size() != names_.size()) {
    fail(source_.number(), "the line has " + runner::core::counted(std::ssize(columns_), "column", "columns") +
                               ", and the first one of the file " + std::to_string(names_.size()));
  }
  const bool is_universal = names_.front() == kNoName;
  if (is_universal && !is_number(columns_.front())) return;  // a range of words, or an empty node
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == kNoName) continue;
    if (columns_[i].empty()) fail(source_.number(), "column " + std::to_string(i + 1) + " is empty");
    if (record.find(names_[i]) == nullptr) record.set(names_[i], Node::sequence());
    record.find(names_[i])->items().push_back(Node::string(std::string(columns_[i])));
  }
}

void ConllRows::check(const LineSource& source) const {
  if (!source.problem().empty()) fail(source.problem_line(), source.problem());
}

void ConllRows::fail(std::int64_t line, const std::string& what) const {
  throw RunError(path_ + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what);
}

bool is_conll_path(const std::string& path) {
  const std::string_view name = runner::core::without_packed_ending(path);
  return name.ends_with(".conll") || name.ends_with(".conllu") || name.ends_with(".bio") || name.ends_with(".iob");
}

bool has_columns(const std::string& path) {
  LineSource source(path);
  while (std::optional<std::string_view> line = source.next()) {
    if (line->starts_with(kMark)) line->remove_prefix(kMark.size());
    if (is_blank(*line)) continue;
    const char begin = (*line)[line->find_first_not_of(kBlanks)];
    return begin != '{' && begin != '[' && columns_of(*line).size() > 1;
  }
  return false;
}

}  // namespace components::data
