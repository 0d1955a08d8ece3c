#include "components/data/table_encoding.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <set>

#include "components/data/text_utils.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::quote;

bool all_numbers(const std::set<std::string>& texts) {
  return std::all_of(texts.begin(), texts.end(),
                     [](const std::string& text) { return parse_number(text).kind == Number::Kind::kNumber; });
}

}  // namespace

std::int64_t ColumnEncoding::category(const std::string& text) const {
  const auto at = std::find(categories.begin(), categories.end(), text);
  return at == categories.end() ? -1 : at - categories.begin();
}

std::int64_t TableEncoding::in_features() const {
  std::int64_t width = 0;
  for (const ColumnEncoding& column : features) width += column.width();
  return width;
}

std::vector<std::pair<std::string, runner::core::Node>> TableEncoding::decoded(std::span<const float> inputs,
                                                                               bool normalized) const {
  using runner::core::Node;
  std::vector<std::pair<std::string, Node>> columns;
  for (const ColumnEncoding& column : features) {
    const auto own = inputs.first(static_cast<std::size_t>(column.width()));
    inputs = inputs.subspan(own.size());
    if (column.type == ColumnType::kNumber) {
      const double value = normalized ? rounded(column.mean + own[0] * column.deviation) : as_written(own[0]);
      columns.emplace_back(column.name, Node::floating(value));
      continue;
    }
    const auto at = std::find(own.begin(), own.end(), 1.0F);
    columns.emplace_back(column.name,
                         at == own.end() ? Node::null() : Node::string(column.categories[at - own.begin()]));
  }
  return columns;
}

bool is_missing(const std::string& field) {
  static constexpr std::array<std::string_view, 5> kMissing = {"", "na", "n/a", "nan", "null"};
  if (field.size() > 4) return false;
  return std::find(kMissing.begin(), kMissing.end(), runner::core::lower(field)) != kMissing.end();
}

Number parse_number(const std::string& field) {
  if (is_missing(field)) return {Number::Kind::kMissing, 0};
  const bool plus = field.front() == '+' && field.size() > 1 && field[1] != '-';
  const char* const begin = field.data() + (plus ? 1 : 0);
  const char* const end = field.data() + field.size();
  double value = 0;
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (rest != end || error == std::errc::invalid_argument) return {Number::Kind::kText, 0};
  // A value beyond float would become infinite; one too small becomes 0, which is harmless.
  const bool too_large = error == std::errc::result_out_of_range && field.find("e-") == std::string::npos &&
                         field.find("E-") == std::string::npos;
  if (too_large || !std::isfinite(value) || std::fabs(value) > FLT_MAX) return {Number::Kind::kNotFinite, 0};
  return {Number::Kind::kNumber, value};
}

ColumnType infer_type(const CsvFile& file, std::size_t column, RecordErrors& errors) {
  std::int64_t numbers = 0;
  std::int64_t texts = 0;
  const CsvRow* first_text = nullptr;
  for (const CsvRow& row : file.rows) {
    const Number::Kind kind = parse_number(row.fields[column]).kind;
    if (kind == Number::Kind::kMissing) continue;
    if (kind != Number::Kind::kText) {
      ++numbers;
    } else if (++texts == 1) {
      first_text = &row;
    }
  }
  const std::string name = quote(file.columns[column]);
  if (numbers + texts == 0) {
    errors.add(0, "column " + name + " is missing in every row", "remove it from features");
    return ColumnType::kNumber;
  }
  if (texts > 0 && numbers >= texts) {
    errors.add(first_text->line, "column " + name + " has " + quote(first_text->fields[column]) + " among numbers",
               "fix the file, or set types: {" + file.columns[column] + ": category}");
  }
  return numbers >= texts ? ColumnType::kNumber : ColumnType::kCategory;
}

std::vector<std::string> find_categories(const CsvFile& file, std::size_t column, RecordErrors& errors) {
  std::set<std::string> texts;
  for (const CsvRow& row : file.rows) {
    if (!is_missing(row.fields[column])) texts.insert(row.fields[column]);
  }
  std::vector<std::string> categories(texts.begin(), texts.end());
  if (static_cast<std::int64_t>(categories.size()) > kCategoriesMax) {
    errors.add(0,
               "category column " + quote(file.columns[column]) + " has " +
                   with_commas(static_cast<std::int64_t>(categories.size())) + " different values, more than " +
                   with_commas(kCategoriesMax),
               "a name or row number is not a useful feature: remove the column");
  }
  if (all_numbers(texts)) {
    std::stable_sort(categories.begin(), categories.end(), [](const std::string& a, const std::string& b) {
      return parse_number(a).value < parse_number(b).value;
    });
  }
  return categories;
}

std::string list_some(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  return runner::core::joined_first(names, kShown, ", ", [](const std::string& name) { return quote(name); });
}

}  // namespace components::data
