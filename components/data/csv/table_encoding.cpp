#include "components/data/csv/table_encoding.h"

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

bool all_numbers(const std::set<std::string>& texts, char decimal) {
  return std::all_of(texts.begin(), texts.end(), [decimal](const std::string& text) {
    return parse_number(text, decimal).kind == Number::Kind::kNumber;
  });
}

/// `1.234,50` as `1234.50`; "" for what is no number with a decimal comma.
std::string with_decimal_point(const std::string& field) {
  std::string text;
  std::size_t group = std::string::npos;  // digits since the last full stop
  bool after_comma = false;
  for (const char c : field) {
    const bool digit = c >= '0' && c <= '9';
    if (c == '.') {
      if (text == "0" || after_comma || text.empty() || (group != std::string::npos && group != 3)) return "";
      group = 0;
      continue;
    }
    if (!digit && group != std::string::npos && group != 3) return "";
    if (c == ',' && after_comma) return "";
    if (digit && group != std::string::npos) ++group;
    if (!digit) group = std::string::npos;
    after_comma = after_comma || c == ',';
    text += c == ',' ? '.' : c;
  }
  return group == std::string::npos || group == 3 ? text : "";
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

Number parse_number(const std::string& field, char decimal) {
  if (is_missing(field)) return {Number::Kind::kMissing, 0};
  if (decimal == ',') {
    const std::string text = with_decimal_point(field);
    return text.empty() ? Number{Number::Kind::kText, 0} : parse_number(text, '.');
  }
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
  std::int64_t others = 0;  // of them, numbers with the other decimal separator
  const char other = file.decimal == '.' ? ',' : '.';
  const CsvRow* first_text = nullptr;
  for (const CsvRow& row : file.rows) {
    const Number::Kind kind = parse_number(row.fields[column], file.decimal).kind;
    if (kind == Number::Kind::kMissing) continue;
    if (kind == Number::Kind::kText && parse_number(row.fields[column], other).kind == Number::Kind::kNumber) ++others;
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
  if (texts > 0 && others == texts) {
    errors.add(first_text->line,
               "column " + name + " has " + quote(first_text->fields[column]) + ", a number with a decimal " +
                   (other == ',' ? "comma" : "point"),
               std::string("set decimal: \"") + other + "\"");
  } else if (texts > 0 && numbers >= texts) {
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
  if (all_numbers(texts, file.decimal)) {
    const auto value = [&file](const std::string& text) { return parse_number(text, file.decimal).value; };
    std::stable_sort(categories.begin(), categories.end(),
                     [&value](const std::string& a, const std::string& b) { return value(a) < value(b); });
  }
  return categories;
}

std::string list_some(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  return runner::core::joined_first(names, kShown, ", ", [](const std::string& name) { return quote(name); });
}

}  // namespace components::data
