#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "components/data/block_location.h"
#include "components/data/csv/csv_file.h"
#include "components/data/csv/table_encoding.h"
#include "components/data/rows.h"
#include "components/data/same_task.h"
#include "components/data/text_files.h"
#include "components/data/text_utils.h"
#include "generated/data/csv_table.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data::csv_table {
namespace {

using runner::core::quote;

constexpr std::int64_t kFreeTextMin = 20;  ///< values; fewer are no burden

/// What is known of the rows of a table besides their values.
struct RowRecords {
  std::int64_t in_file = 0;           ///< rows, before any were left out
  std::vector<std::int64_t> numbers;  ///< CsvRow::number of each
  std::vector<std::string> kept_names;
  std::vector<std::vector<std::string>> kept;  ///< [N][kept_names]
};

class CsvTable final : public Rows {
 public:
  CsvTable(const Config& config, TableEncoding encoding, BatchSpec signature, Content content, std::string description,
           RowRecords records)
      : Rows(std::move(signature), std::move(content), std::move(description)),
        path_(config.path),
        encoding_(std::move(encoding)),
        records_(std::move(records)) {}

  const TableEncoding& encoding() const { return encoding_; }
  std::vector<std::string> files() const override { return {path_}; }
  std::vector<std::pair<std::string, runner::core::Node>> columns_of(std::int64_t index) const override {
    return encoding_.decoded(inputs_of(index), encoding_.normalized);
  }
  std::string class_name(std::int64_t number) const override {
    const auto& names = encoding_.targets[0].categories;
    const bool known = number >= 0 && number < static_cast<std::int64_t>(names.size());
    return known ? names[static_cast<std::size_t>(number)] : Rows::class_name(number);
  }
  std::optional<Record> record_of(std::int64_t index) const override {
    return Record{"row", records_.numbers.at(static_cast<std::size_t>(index))};
  }
  std::int64_t records() const override { return records_.in_file; }
  std::vector<std::string> target_names() const override {
    std::vector<std::string> names;
    for (const ColumnEncoding& target : encoding_.targets) names.push_back(target.name);
    return names;
  }
  std::vector<std::pair<std::string, std::string>> kept_of(std::int64_t index) const override {
    std::vector<std::pair<std::string, std::string>> fields;
    for (std::size_t i = 0; i < records_.kept_names.size(); ++i) {
      fields.emplace_back(records_.kept_names[i], records_.kept[static_cast<std::size_t>(index)][i]);
    }
    return fields;
  }

 private:
  std::string path_;
  TableEncoding encoding_;
  RowRecords records_;
};

MissingPolicy policy_of(Missing missing) {
  switch (missing) {
    case Missing::kMean: return MissingPolicy::kMean;
    case Missing::kDrop: return MissingPolicy::kDrop;
    case Missing::kError: break;
  }
  return MissingPolicy::kError;
}

/// Keeps the rows that `split` selects, in file order; false when there are none. New rows are predicted one and all.
bool keep_share(const Config& config, const Inputs& inputs, CsvFile& file) {
  if (!config.split || inputs.new_rows) return true;
  const auto location = location_of(inputs.block, "split");
  const auto range = parse_split(*config.split);
  if (!range) {
    inputs.diagnostics.error(location, range.failure().message, range.failure().hint);
    return false;
  }
  const bool is_random = config.split_by == SplitBy::kRandom && !range.value().is_slice();
  std::vector<std::pair<std::uint64_t, std::size_t>> order;  // equal rows beside each other
  for (const CsvRow& row : file.rows) {
    std::string text;
    for (const std::string& field : row.fields) text += field + '\n';
    order.emplace_back(is_random ? stable_hash(text) : 0, order.size());
  }
  std::sort(order.begin(), order.end());
  const auto whole = static_cast<std::int64_t>(order.size());
  std::vector<std::size_t> kept;
  for (std::int64_t i = range.value().begin(whole); i < range.value().end(whole); ++i) {
    kept.push_back(order[static_cast<std::size_t>(i)].second);
  }
  std::sort(kept.begin(), kept.end());
  std::vector<CsvRow> rows;
  for (const std::size_t i : kept) rows.push_back(std::move(file.rows[i]));
  file.rows = std::move(rows);
  if (!file.rows.empty()) return true;
  inputs.diagnostics.error(location,
                           "split \"" + *config.split + "\" of " + counted_large(whole, "row", "rows") + " has no rows",
                           "use a larger fraction");
  return false;
}

/// Builds one table: finds its columns, takes or makes the encoding of the training set, and encodes every row.
class Builder {
 public:
  Builder(const Config& config, const Inputs& inputs, const CsvFile& file, std::int64_t in_file, RecordErrors& errors)
      : config_(config), inputs_(inputs), file_(file), errors_(errors), policy_(policy_of(config.missing)) {
    records_.in_file = in_file;
  }

  std::shared_ptr<Dataset> build() {
    const auto* train = dynamic_cast<const CsvTable*>(inputs_.train);
    const int before = inputs_.diagnostics.error_count();
    if (inputs_.new_rows && !config_.header && !has_trained_columns(train->encoding())) return nullptr;
    find_columns(train == nullptr ? nullptr : &train->encoding());
    find_kept();
    if (inputs_.diagnostics.error_count() > before) return nullptr;
    select_rows();
    if (rows_.empty() && !errors_.any()) errors_.add(0, "every row has a missing value, so no rows are left");
    if (errors_.any()) return nullptr;
    if (train != nullptr) {
      check_same_as(train->encoding());
      encoding_ = train->encoding();
    } else {
      make_encoding();
    }
    if (errors_.any() || inputs_.diagnostics.error_count() > before) return nullptr;
    if (!fits_training_set(signature(), inputs_)) return nullptr;
    Rows::Content content = encode();
    if (errors_.any()) return nullptr;
    note_records();
    return std::make_shared<CsvTable>(config_, encoding_, signature(), std::move(content), describe(),
                                      std::move(records_));
  }

 private:
  std::optional<std::size_t> column(const std::string& name, const runner::core::Location& location) {
    const auto at = std::find(file_.columns.begin(), file_.columns.end(), name);
    if (at != file_.columns.end()) return static_cast<std::size_t>(at - file_.columns.begin());
    const std::string near = runner::core::closest(name, file_.columns);
    std::string hint =
        near.empty() ? "its columns are " + list_some(file_.columns) : "did you mean " + quote(near) + "?";
    if (const std::string other = other_delimiter_hint(file_.columns); near.empty() && !other.empty()) hint = other;
    inputs_.diagnostics.error(location, config_.path + " has no column " + quote(name), hint);
    return std::nullopt;
  }

  /// Columns without names are known by their place: a file that lacks the target has it moved unless it comes last.
  bool has_trained_columns(const TableEncoding& train) {
    const std::size_t all = train.columns.size(), here = file_.columns.size(), targets = train.targets.size();
    const bool last = std::all_of(train.targets.begin(), train.targets.end(), [&](const ColumnEncoding& target) {
      return std::find(train.columns.begin(), train.columns.end(), target.name) - train.columns.begin() >=
             static_cast<std::ptrdiff_t>(all - targets);
    });
    if (here == all || (last && here == all - targets)) return true;
    inputs_.diagnostics.error(location_of(inputs_.block, "path"),
                              config_.path + " has " + columns_text(here) + ", and the training set has " +
                                  columns_text(all) + " (header: false)",
                              last ? "leave out the target or keep it, but no other column"
                                   : "keep the place of every column, that of the target too, with any value");
    return false;
  }

  static std::string columns_text(std::size_t count) {
    return counted_large(static_cast<std::int64_t>(count), "column", "columns");
  }

  /// Columns that are copied to the output, and the target of new rows, which is not read otherwise.
  void find_kept() {
    const auto keep_column = [this](const std::string& name, std::size_t at) {
      records_.kept_names.push_back(name);
      kept_.push_back(at);
    };
    for (const std::string& name : inputs_.keep) {
      runner::core::Location flag;
      flag.source = std::make_shared<runner::core::Source>(
          runner::core::Source{"--keep " + name, "", runner::core::Source::Kind::kFlag});
      if (const auto at = column(name, flag)) keep_column(name, *at);
    }
    if (!inputs_.new_rows) return;
    for (const std::string& name : config_.target) {
      const auto at = std::find(file_.columns.begin(), file_.columns.end(), name);
      if (at == file_.columns.end()) continue;
      keep_column(config_.target.size() == 1 ? "target" : "target_" + name,
                  static_cast<std::size_t>(at - file_.columns.begin()));
    }
  }

  void note_records() {
    for (const CsvRow* row : rows_) {
      records_.numbers.push_back(row->number);
      if (kept_.empty()) continue;
      std::vector<std::string>& fields = records_.kept.emplace_back();
      for (const std::size_t at : kept_) fields.push_back(row->fields[at]);
    }
    if (!inputs_.new_rows || rows_.size() == file_.rows.size()) return;
    std::vector<std::string> dropped;
    std::size_t next = 0;
    for (const CsvRow& row : file_.rows) {
      if (next < rows_.size() && rows_[next] == &row) {
        ++next;
      } else {
        dropped.push_back(std::to_string(row.number));
      }
    }
    constexpr std::size_t kShown = 5;
    const auto count = static_cast<std::int64_t>(dropped.size());
    inputs_.diagnostics.warning(
        location_of(inputs_.block, "path"),
        with_commas(count) + " of " + counted_large(records_.in_file, "row", "rows") + " of " + config_.path + " " +
            (count == 1 ? "has" : "have") + " no prediction, as a value is missing (row" + (count == 1 ? " " : "s ") +
            runner::core::joined_first(dropped, kShown, ", ", [](const std::string& row) { return row; }) + ")",
        "the run was trained with missing: drop; with missing: mean every row has a prediction");
  }

  void find_columns(const TableEncoding* train) {
    if (inputs_.new_rows) {
      for (const ColumnEncoding& feature : train->features)
        add_feature(feature.name, location_of(inputs_.block, "path"));
      return;
    }
    for (std::size_t i = 0; i < config_.target.size(); ++i) {
      const runner::core::Location location = location_of(inputs_.block, "target", i);
      const auto at = column(config_.target[i], location);
      if (!at) continue;
      if (std::count(columns_.targets.begin(), columns_.targets.end(), *at) > 0) {
        inputs_.diagnostics.error(location, "target \"" + config_.target[i] + "\" is named twice");
      }
      columns_.targets.push_back(*at);
    }
    if (config_.features) {
      for (std::size_t i = 0; i < config_.features->size(); ++i) {
        add_feature((*config_.features)[i], location_of(inputs_.block, "features", i));
      }
    } else if (train != nullptr) {
      for (const ColumnEncoding& feature : train->features)
        add_feature(feature.name, location_of(inputs_.block, "path"));
    } else {
      add_all_but(ignored());
    }
    check_types();
  }

  /// Columns that `ignore` names.
  std::vector<std::size_t> ignored() {
    std::vector<std::size_t> ignored;
    for (std::size_t i = 0; config_.ignore && i < config_.ignore->size(); ++i) {
      const auto at = column((*config_.ignore)[i], location_of(inputs_.block, "ignore", i));
      if (at) ignored.push_back(*at);
    }
    return ignored;
  }

  void add_all_but(const std::vector<std::size_t>& ignored) {
    const auto has = [](const std::vector<std::size_t>& list, std::size_t at) {
      return std::find(list.begin(), list.end(), at) != list.end();
    };
    for (std::size_t i = 0; i < file_.columns.size(); ++i) {
      if (has(columns_.targets, i) || has(ignored, i)) continue;
      columns_.features.push_back(i);
      if (!file_.columns[i].empty()) continue;
      const bool last = i + 1 == file_.columns.size();
      errors_.add(1,
                  last ? "the header ends with a delimiter, so the last column has no name"
                       : "column " + std::to_string(i + 1) + " has no name in the header",
                  "name it, or leave it out with ignore: [\"\"]");
    }
    if (columns_.features.empty()) {
      inputs_.diagnostics.error(
          location_of(inputs_.block, "target"),
          config_.path + " has no column besides the target" + (ignored.empty() ? "" : " and those of ignore"));
    }
  }

  void add_feature(const std::string& name, const runner::core::Location& location) {
    const auto at = column(name, location);
    if (!at) return;
    if (std::count(columns_.targets.begin(), columns_.targets.end(), *at) > 0) {
      inputs_.diagnostics.error(location, "feature \"" + name + "\" is the target, too",
                                "a feature that equals the target makes training pointless");
    } else if (std::count(columns_.features.begin(), columns_.features.end(), *at) > 0) {
      inputs_.diagnostics.error(location, "feature \"" + name + "\" is named twice");
    }
    columns_.features.push_back(*at);
  }

  void check_types() {
    const runner::core::Node* types = inputs_.block.find("types");
    if (types == nullptr) return;
    for (const auto& entry : types->entries()) {
      const std::optional<std::size_t> at = column(entry.key, entry.key_location);
      if (at)
        types_.emplace_back(*at, entry.value.as_string() == "number" ? ColumnType::kNumber : ColumnType::kCategory);
    }
  }

  std::vector<std::size_t> used() const {
    std::vector<std::size_t> used = columns_.features;
    used.insert(used.end(), columns_.targets.begin(), columns_.targets.end());
    return used;
  }

  /// Keeps the rows that the policy for missing values allows.
  void select_rows() {
    for (const CsvRow& row : file_.rows) {
      bool keep = true;
      for (const std::size_t at : columns_.features) keep = field_is_kept(row, at, policy_) && keep;
      const MissingPolicy of_target = policy_ == MissingPolicy::kMean ? MissingPolicy::kError : policy_;
      for (const std::size_t at : columns_.targets) keep = field_is_kept(row, at, of_target) && keep;
      if (keep) rows_.push_back(&row);
    }
  }

  bool field_is_kept(const CsvRow& row, std::size_t at, MissingPolicy policy) {
    if (!is_missing(row.fields[at]) || policy == MissingPolicy::kMean) return true;
    if (policy == MissingPolicy::kDrop) return false;
    const std::string what = row.fields[at].empty() ? "is empty" : "is " + quote(row.fields[at]);
    if (policy_ == MissingPolicy::kMean) {
      errors_.add(row.line, "target " + name(at) + " " + what,
                  "a target is never imputed: set missing: drop, or fix the row");
    } else {
      errors_.add(row.line, "column " + name(at) + " " + what,
                  inputs_.new_rows ? "fix the row; a model that is trained with missing: mean predicts such rows"
                                   : "set missing: mean or missing: drop, or fix the row");
    }
    return false;
  }

  std::string name(std::size_t at) const { return quote(file_.columns[at]); }

  std::optional<ColumnType> given_type(std::size_t at) const {
    for (const auto& [column, type] : types_) {
      if (column == at) return type;
    }
    return std::nullopt;
  }

  void make_encoding() {
    encoding_.normalized = config_.normalize;
    encoding_.columns = file_.columns;
    for (const std::size_t at : columns_.features) {
      ColumnEncoding feature{file_.columns[at], ColumnType::kNumber, {}, 0, 0};
      feature.type = given_type(at).value_or(ColumnType::kNumber);
      if (!given_type(at)) feature.type = infer_type(file_, at, errors_);
      if (feature.type == ColumnType::kCategory) feature.categories = find_categories(file_, at, errors_);
      if (!given_type(at)) warn_of_free_text(feature);
      if (!given_type(at) && !config_.features) warn_of_row_number(at, feature);
      if (feature.type == ColumnType::kNumber && !errors_.any()) measure(at, feature);
      encoding_.features.push_back(std::move(feature));
    }
    for (const std::size_t at : columns_.targets) make_target(at);
    const std::vector<ColumnEncoding>& targets = encoding_.targets;
    if (encoding_.classification && targets.size() > 1) {
      inputs_.diagnostics.error(location_of(inputs_.block, "target"),
                                "classification has one target, got " + std::to_string(targets.size()),
                                "name one column, or use several number columns with task: regression");
    }
    if (encoding_.classification && targets.size() == 1 && targets[0].categories.size() == 1) {
      errors_.add(0, "target \"" + targets[0].name + "\" is \"" + targets[0].categories[0] + "\" in every row",
                  "classification needs at least two classes");
    }
  }

  /// A column with mostly unique values is hardly meant as a category.
  void warn_of_free_text(const ColumnEncoding& feature) {
    const auto values = static_cast<std::int64_t>(feature.categories.size());
    if (values < kFreeTextMin || 2 * values <= static_cast<std::int64_t>(rows_.size()) || errors_.any()) return;
    inputs_.diagnostics.warning(location_of(inputs_.block, "path"),
                                config_.path + ": column " + quote(feature.name) + " looks like free text: its " +
                                    with_commas(values) + " different values in " +
                                    counted_large(static_cast<std::int64_t>(rows_.size()), "row", "rows") + " are " +
                                    with_commas(values) + " inputs",
                                "set ignore: [" + feature.name + "], or types: {" + feature.name + ": category}");
  }

  /// Whole numbers that are all different under such a name tell nothing about a new row.
  void warn_of_row_number(std::size_t at, const ColumnEncoding& feature) {
    if (feature.type != ColumnType::kNumber || errors_.any() ||
        static_cast<std::int64_t>(file_.rows.size()) < kFreeTextMin)
      return;
    const std::string word = runner::core::lower(feature.name);
    const bool called_so = word == "id" || word.ends_with("_id") || word.ends_with(" id") || word == "index" ||
                           word == "row" || word == "unnamed: 0";
    if (!called_so) return;
    std::vector<double> values;
    for (const CsvRow& row : file_.rows) {
      const Number number = parse_number(row.fields[at], file_.decimal);
      if (number.kind != Number::Kind::kNumber || number.value != std::floor(number.value)) return;
      values.push_back(number.value);
    }
    std::sort(values.begin(), values.end());
    if (std::adjacent_find(values.begin(), values.end()) != values.end()) return;
    inputs_.diagnostics.warning(
        location_of(inputs_.block, "path"),
        config_.path + ": column " + quote(feature.name) +
            " has another whole number in each row, as the number of a row has, and is an input",
        "leave it out with ignore: [" + feature.name + "], or name the inputs in features");
  }

  void make_target(std::size_t at) {
    ColumnEncoding target{file_.columns[at], ColumnType::kNumber, {}, 0, 0};
    if (config_.task == Task::kClassification) {
      target.type = ColumnType::kCategory;
    } else {
      target.type = given_type(at).value_or(ColumnType::kNumber);
      if (!given_type(at)) target.type = infer_type(file_, at, errors_);
      if (target.type == ColumnType::kCategory && config_.task == Task::kRegression) {
        inputs_.diagnostics.error(location_of(inputs_.block, "task"),
                                  "task is regression, but target " + name(at) + " is a category column",
                                  "set task: classification, or name a number column");
      }
    }
    if (target.type == ColumnType::kCategory) {
      target.categories = find_categories(file_, at, errors_);
      encoding_.classification = true;
    }
    encoding_.targets.push_back(std::move(target));
  }

  void measure(std::size_t at, ColumnEncoding& feature) {
    double sum = 0;
    std::int64_t count = 0;
    for (const CsvRow* row : rows_) {
      const std::optional<double> value = number(*row, at);
      if (!value) continue;
      sum += *value;
      ++count;
    }
    if (count == 0 || errors_.any()) return;
    feature.mean = sum / static_cast<double>(count);
    double squares = 0;
    for (const CsvRow* row : rows_) {
      const std::optional<double> value = number(*row, at);
      if (value) squares += (*value - feature.mean) * (*value - feature.mean);
    }
    feature.deviation = std::sqrt(squares / static_cast<double>(count));
    // Rounding of the mean leaves a tiny deviation in a constant column; dividing by it would amplify noise.
    if (feature.deviation <= 1e-12 * std::fabs(feature.mean)) feature.deviation = 0;
  }

  /// The number in a field; none if it is missing. Reports anything else.
  std::optional<double> number(const CsvRow& row, std::size_t at) {
    const Number number = parse_number(row.fields[at], file_.decimal);
    if (number.kind == Number::Kind::kNumber) return number.value;
    if (number.kind == Number::Kind::kMissing) return std::nullopt;
    const bool text = number.kind == Number::Kind::kText;
    const std::string wanted = text ? "a number" : "a finite number";
    errors_.add(row.line, "column " + name(at) + " must be " + wanted + ", got " + quote(row.fields[at]),
                text && !inputs_.train ? "fix the file, or set types: {" + file_.columns[at] + ": category}" : "");
    return 0.0;
  }

  void check_same_as(const TableEncoding& train) {
    if (config_.normalize != train.normalized) {
      const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
      inputs_.diagnostics.error(
          location_of(inputs_.block, "normalize"),
          "normalize of data." + inputs_.name + " is " + text(config_.normalize) + ", and that of data.train " +
              text(train.normalized),
          "the model would read other numbers than it was trained on: set normalize: " + text(train.normalized));
    }
    const auto names = [this](const std::vector<std::size_t>& columns) {
      std::vector<std::string> names;
      for (const std::size_t at : columns) names.push_back(file_.columns[at]);
      return names;
    };
    const auto trained = [](const std::vector<ColumnEncoding>& columns) {
      std::vector<std::string> names;
      for (const ColumnEncoding& column : columns) names.push_back(column.name);
      return names;
    };
    if (names(columns_.features) != trained(train.features)) {
      inputs_.diagnostics.error(location_of(inputs_.block, "features"),
                                "the features of data." + inputs_.name + " are not those of data.train",
                                "data.train has " + list_some(trained(train.features)));
    }
    if (!inputs_.new_rows && names(columns_.targets) != trained(train.targets)) {
      inputs_.diagnostics.error(location_of(inputs_.block, "target"),
                                "the target of data." + inputs_.name + " is not that of data.train",
                                "data.train has " + list_some(trained(train.targets)));
    }
  }

  Rows::Content encode() {
    Rows::Content content{static_cast<std::int64_t>(rows_.size()), {}, {}, {}};
    content.inputs.reserve(rows_.size() * static_cast<std::size_t>(encoding_.in_features()));
    for (const CsvRow* row : rows_) {
      for (std::size_t i = 0; i < columns_.features.size(); ++i) {
        encode_feature(*row, columns_.features[i], encoding_.features[i], content.inputs);
      }
      if (inputs_.new_rows) continue;
      for (std::size_t i = 0; i < columns_.targets.size(); ++i) {
        const std::size_t at = columns_.targets[i];
        if (encoding_.classification) {
          content.classes.push_back(category(*row, at, encoding_.targets[i]));
        } else {
          content.values.push_back(static_cast<float>(number(*row, at).value_or(0)));
        }
      }
    }
    if (unknown_ > 0) {
      inputs_.diagnostics.warning(location_of(inputs_.block, "path"),
                                  config_.path + ": " + counted_large(unknown_, "category is", "categories are") +
                                      " not in the training set and all zeros (" + first_unknown_ + ")");
    }
    if (inputs_.new_rows) {  // samples have a target, of any value
      content.classes.resize(encoding_.classification ? rows_.size() : 0);
      content.values.resize(encoding_.classification ? 0 : rows_.size() * encoding_.targets.size());
    }
    return content;
  }

  void encode_feature(const CsvRow& row, std::size_t at, const ColumnEncoding& feature, std::vector<float>& inputs) {
    if (feature.type == ColumnType::kNumber) {
      double value = number(row, at).value_or(feature.mean);
      if (config_.normalize) value = feature.deviation > 0 ? (value - feature.mean) / feature.deviation : 0.0;
      inputs.push_back(static_cast<float>(value));
      return;
    }
    const std::size_t first = inputs.size();
    inputs.resize(first + feature.categories.size(), 0.0F);
    if (is_missing(row.fields[at])) return;
    if (config_.unknown == Unknown::kZeros && feature.category(row.fields[at]) < 0) {
      if (unknown_++ == 0) first_unknown_ = "column " + name(at) + " has " + quote(row.fields[at]);
      return;
    }
    const std::int64_t index = category(row, at, feature);
    if (index >= 0) inputs[first + static_cast<std::size_t>(index)] = 1.0F;
  }

  std::string unknown_hint(const ColumnEncoding& encoding) const {
    if (&encoding == &encoding_.targets[0]) return "";
    return inputs_.new_rows ? "; a model that is trained with unknown: zeros predicts such rows"
                            : "; set unknown: zeros to take others as all zeros";
  }

  std::int64_t category(const CsvRow& row, std::size_t at, const ColumnEncoding& encoding) {
    const std::int64_t index = encoding.category(row.fields[at]);
    if (index < 0) {
      errors_.add(row.line,
                  "column " + name(at) + " has " + quote(row.fields[at]) + ", which is not in the training set",
                  "the training set has " + list_some(encoding.categories) + unknown_hint(encoding));
    }
    return index;
  }

  BatchSpec signature() const {
    const std::int64_t in_features = encoding_.in_features();
    if (!encoding_.classification) {
      return Rows::regression_signature(in_features, static_cast<std::int64_t>(encoding_.targets.size()));
    }
    return Rows::classification_signature(in_features,
                                          static_cast<std::int64_t>(encoding_.targets[0].categories.size()));
  }

  std::string describe() const {
    const std::int64_t dropped = static_cast<std::int64_t>(file_.rows.size() - rows_.size());
    std::string text = counted_large(static_cast<std::int64_t>(rows_.size()), "row", "rows") + " of " + config_.path;
    if (config_.split) text += " (split " + *config_.split + ")";
    if (dropped > 0) text += " (" + with_commas(dropped) + " dropped)";
    text += ", " + counted_large(encoding_.in_features(), "input", "inputs") + " from " +
            counted_large(static_cast<std::int64_t>(encoding_.features.size()), "column", "columns") + ", ";
    if (encoding_.classification) {
      return text +
             counted_large(static_cast<std::int64_t>(encoding_.targets[0].categories.size()), "class", "classes") +
             " of " + encoding_.targets[0].name;
    }
    for (std::size_t i = 0; i < encoding_.targets.size(); ++i) {
      text += (i == 0 ? (encoding_.targets.size() == 1 ? "target " : "targets ") : ", ") + encoding_.targets[i].name;
    }
    return text;
  }

  const Config& config_;
  const Inputs& inputs_;
  const CsvFile& file_;
  RecordErrors& errors_;
  MissingPolicy policy_;
  TableColumns columns_;
  std::vector<std::pair<std::size_t, ColumnType>> types_;
  std::vector<const CsvRow*> rows_;
  TableEncoding encoding_;
  std::vector<std::size_t> kept_;
  RowRecords records_;
  std::int64_t unknown_ = 0;  ///< fields with a category that the training set lacks
  std::string first_unknown_;
};

CsvEncoding encoding_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::kLatin1: return CsvEncoding::kLatin1;
    case Encoding::kWindows1252: return CsvEncoding::kWindows1252;
    case Encoding::kUtf8: break;
  }
  return CsvEncoding::kUtf8;
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  RecordErrors errors(inputs.diagnostics, location_of(inputs.block, "path"), config.path);
  CsvFile file = read_csv(
      config.path, {config.delimiter[0], config.header, config.decimal[0], encoding_of(config.encoding)}, errors);
  const auto in_file = static_cast<std::int64_t>(file.rows.size());
  if (errors.any() || !keep_share(config, inputs, file)) return nullptr;
  return Builder(config, inputs, file, in_file, errors).build();
}

}  // namespace components::data::csv_table
