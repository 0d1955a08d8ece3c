#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/data/csv/csv_file.h"
#include "runner/core/node.h"

namespace components::data {

enum class ColumnType { kNumber, kCategory };
enum class MissingPolicy { kError, kMean, kDrop };

/// How one column becomes inputs or a target. Found on the training set, then used for every set.
struct ColumnEncoding {
  std::string name;
  ColumnType type = ColumnType::kNumber;
  std::vector<std::string> categories;  ///< in the order of their text (numbers by size); empty for a number column
  double mean = 0;
  double deviation = 0;  ///< over the training set, divided by N; 0 for a constant column

  /// Number of inputs of the column.
  std::int64_t width() const { return type == ColumnType::kNumber ? 1 : static_cast<std::int64_t>(categories.size()); }
  /// Index of a category; -1 if it is not in the training set.
  std::int64_t category(const std::string& text) const;
};

struct TableEncoding {
  std::vector<ColumnEncoding> features;
  std::vector<ColumnEncoding> targets;
  bool classification = false;
  bool normalized = false;
  std::vector<std::string> columns;  ///< of the training set's file

  std::int64_t in_features() const;
  /// The inputs of one row as columns again: numbers, categories, null for a category that was missing.
  std::vector<std::pair<std::string, runner::core::Node>> decoded(std::span<const float> inputs, bool normalized) const;
};

/// The recipe's settings of the columns, by index in the file.
struct TableColumns {
  std::vector<std::size_t> features;
  std::vector<std::size_t> targets;
};

/// A field of a number column. Missing: empty, `NA`, `N/A`, `NaN`, `null` in any case. With `,` as decimal separator a
/// full stop separates thousands, three digits each.
struct Number {
  enum class Kind { kMissing, kNumber, kNotFinite, kText };
  Kind kind = Kind::kMissing;
  double value = 0;
};
Number parse_number(const std::string& field, char decimal);
bool is_missing(const std::string& field);

/// Type of a column without a setting in the recipe: numbers, unless fewer than half of the fields are. A few words
/// among numbers are more likely a mistake than a category, and are reported, as is a column without values.
ColumnType infer_type(const CsvFile& file, std::size_t column, RecordErrors& errors);

/// Categories of `column` in order; reports when there are more than kCategoriesMax.
std::vector<std::string> find_categories(const CsvFile& file, std::size_t column, RecordErrors& errors);

inline constexpr std::int64_t kCategoriesMax = 1000;

/// `"electric", "gas" and 3 more`; for hints.
std::string list_some(const std::vector<std::string>& names);

}  // namespace components::data
