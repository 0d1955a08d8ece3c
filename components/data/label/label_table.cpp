#include "components/data/label/label_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "components/data/text_utils.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::counted_large;
using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr char kName = '"';  ///< before a label that is a name
constexpr std::int64_t kClassesMax = 100'000;
constexpr std::size_t kShown = 8;
constexpr const char* kLeaveOut = "leave such records out: on_bad_record: skip";

bool is_name(const std::string& label) { return label.front() == kName; }
std::string bare(const std::string& label) { return is_name(label) ? label.substr(1) : label; }
std::string shown(const std::string& label) { return is_name(label) ? runner::core::quote(bare(label)) : label; }

double value_of(const std::string& label) {
  double value = 0;
  std::from_chars(label.data(), label.data() + label.size(), value);
  return value;
}

bool is_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

const char* kind_of(const Node& value) {
  return value.is_null()       ? "null"
         : value.is_sequence() ? "a list"
         : value.is_mapping()  ? "an object"
         : value.is_string()   ? "a text"
         : value.is_bool()     ? "true or false"
                               : "a number";
}

std::int64_t place_in(const std::vector<std::string>& names, const std::string& label) {
  const auto at = std::find(names.begin(), names.end(), bare(label));
  return at == names.end() ? -1 : at - names.begin();
}

/// The class that a label is among these; -1: none.
std::int64_t class_among(const std::vector<std::string>& names, const std::string& label) {
  const std::int64_t named = place_in(names, label);
  if (named >= 0 || is_name(label)) return named;
  const double value = value_of(label);
  return value < static_cast<double>(names.size()) ? static_cast<std::int64_t>(value) : -1;
}

bool has_all(const std::vector<std::string>& names, const std::vector<std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(),
                     [&names](const std::string& label) { return class_among(names, label) >= 0; });
}

}  // namespace

std::string labels_text(const std::vector<std::string>& names) {
  std::vector<std::string> first(names.begin(), names.begin() + std::min<std::ptrdiff_t>(kShown, std::ssize(names)));
  for (std::string& name : first) name = runner::core::quote(name);
  const std::string text = runner::core::joined(first);
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

Result<std::string> label_text(const Node& value, LabelKind kind, const std::string& key) {
  if (kind == LabelKind::kValues) {
    if (value.is_number() && std::isfinite(value.as_double())) return value.scalar_text();
    if (value.is_string() && is_number(value.as_string())) return value.as_string();  // as a CSV file has them
    return Failure{
        key + " is " + (value.is_number() ? value.scalar_text() : kind_of(value)) + ", not a number",
        value.is_string() ? "labels that are names are classes: remove problem_type from the model" : kLeaveOut};
  }
  if (value.is_bool()) return std::string(value.as_bool() ? "1" : "0");
  if (value.is_string()) {
    if (value.as_string().empty()) return Failure{key + " is empty", kLeaveOut};
    return kName + value.as_string();
  }
  if (!value.is_number()) return Failure{key + " is " + kind_of(value) + ", not the name or number of a class", ""};
  const double number = value.as_double();
  if (number != std::floor(number) || !std::isfinite(number)) {
    return Failure{key + " is " + value.scalar_text() + ", and the number of a class has no fraction",
                   "a model that tells numbers has problem_type: regression"};
  }
  if (number < 0) return Failure{key + " is " + value.scalar_text() + ", and classes are numbered from 0", kLeaveOut};
  if (number >= static_cast<double>(kClassesMax)) {
    return Failure{
        key + " is " + value.scalar_text() + ", and there are at most " + with_commas(kClassesMax) + " classes",
        "a model that tells numbers has problem_type: regression"};
  }
  return std::to_string(static_cast<std::int64_t>(number));
}

Result<std::vector<std::string>> label_texts(const Node& label, LabelKind kind, const std::string& key) {
  const bool several = kind == LabelKind::kClasses || kind == LabelKind::kValues;
  if (label.is_sequence() && !several) {
    return Failure{key + " is a list, and a record has one class",
                   "a model of several classes a record has problem_type: multi_label_classification"};
  }
  if (!label.is_sequence() && kind == LabelKind::kClasses) {
    return Failure{key + " is " + kind_of(label) + ", not a list of classes",
                   "a model of one class a record has no problem_type: multi_label_classification"};
  }
  std::vector<std::string> texts;
  for (const Node& one : label.is_sequence() ? label.items() : std::vector<Node>{label}) {
    auto text = label_text(one, kind, key);
    if (!text) return text.failure();
    texts.push_back(std::move(text.value()));
  }
  return texts;
}

LabelTable::LabelTable(LabelKind kind, const Inputs& inputs)
    : kind_(kind),
      of_model_(inputs.model_classes.names),
      count_of_model_(inputs.model_classes.count),
      reads_none_(inputs.new_rows) {
  if (inputs.train == nullptr) return;
  const TensorSpec& target = inputs.train->signature().at(kTarget);
  numbers_of_train_ = target.shape.size() > 1 && target.shape.back() > 0 ? target.shape.back() : 0;
  for (std::int64_t i = 0; i < target.num_classes; ++i) of_train_.push_back(inputs.train->class_name(i));
  if (kind == LabelKind::kClasses) of_train_ = inputs.train->target_names();
}

std::optional<Failure> LabelTable::problem_of(const std::string& label) const {
  if (of_train_.empty() && !labels_.empty() && is_name(label) != are_named_) {
    return Failure{"the label " + shown(label) + " is a " + (are_named_ ? "number" : "name") +
                       ", and those before it " + (are_named_ ? "names" : "numbers"),
                   "write the labels of a set as names, or as numbers from 0"};
  }
  if (!of_train_.empty() && class_among(of_train_, label) < 0) {
    const std::string near = runner::core::closest(bare(label), of_train_);
    return Failure{
        "data.train has no record with the label " + shown(label) + ": its labels are " + labels_text(of_train_),
        near.empty() ? "give data.train records of all classes" : "did you mean " + near + "?"};
  }
  if (static_cast<std::int64_t>(labels_.size()) >= kClassesMax) {
    return Failure{"the set has more than " + with_commas(kClassesMax) + " labels that differ",
                   "name the field of the class: columns: {label: FIELD}"};
  }
  return std::nullopt;
}

std::optional<Failure> LabelTable::take_class(const std::string& label, std::int32_t& place) {
  if (const auto known = places_.find(label); known != places_.end()) {
    place = known->second;
    return std::nullopt;
  }
  if (auto problem = problem_of(label)) return problem;
  if (labels_.empty()) are_named_ = is_name(label);
  place = static_cast<std::int32_t>(labels_.size());
  places_.emplace(label, place);
  labels_.push_back(label);
  return std::nullopt;
}

/// All records have as many values.
std::optional<Failure> LabelTable::take_row(std::vector<float> row) {
  const auto width = static_cast<std::int64_t>(row.size());
  // A list that is empty says of several classes that the record has none.
  const auto first = std::find_if(rows_.begin(), rows_.end(), [this](const std::vector<float>& other) {
    return kind_ != LabelKind::kClasses || !other.empty();
  });
  const std::int64_t wanted = numbers_of_train_ > 0  ? numbers_of_train_
                              : first == rows_.end() ? width
                                                     : std::ssize(*first);
  if (width != wanted) {
    return Failure{"the label has " + counted_large(width, "value", "values") + ", and " +
                       (numbers_of_train_ > 0 ? "those of data.train have " : "that of the first record has ") +
                       with_commas(wanted),
                   "give all records as many"};
  }
  rows_.push_back(std::move(row));
  return std::nullopt;
}

std::optional<Failure> LabelTable::take(const std::vector<std::string>& given, std::vector<std::int32_t>& tags) {
  if (reads_none_) {
    rows_.emplace_back();
    return std::nullopt;
  }
  if (kind_ == LabelKind::kValues) {
    std::vector<float> row;
    for (const std::string& label : given) row.push_back(static_cast<float>(value_of(label)));
    return take_row(std::move(row));
  }
  // Of several classes, numbers are one for each class.
  const bool is_row = kind_ == LabelKind::kClasses && !given.empty() && !is_name(given.front());
  if (is_row) {
    if (!labels_.empty()) return problem_of(given.front());
    std::vector<float> row;
    for (const std::string& label : given) row.push_back(static_cast<float>(value_of(label)));
    if (std::any_of(row.begin(), row.end(), [](float value) { return value > 1; })) {
      return Failure{"the label is a list of numbers, and not all are 0 or 1",
                     "write the names of the classes that a record has, or 0 or 1 for each class"};
    }
    return take_row(std::move(row));
  }
  std::vector<std::int32_t> places;
  for (const std::string& label : given) {
    std::int32_t place = 0;
    if (auto problem = take_class(label, place)) return problem;
    places.push_back(place);
  }
  if (kind_ == LabelKind::kTags) {
    for (std::int32_t& tag : tags) {
      if (tag != kPadTarget) tag = places[static_cast<std::size_t>(tag)];
    }
    return std::nullopt;
  }
  rows_.emplace_back(places.begin(), places.end());
  return std::nullopt;
}

void LabelTable::finish() {
  if (reads_none_ && kind_ == LabelKind::kTags) classes_ = {0};  // of all places
  if (kind_ == LabelKind::kValues) {
    count_ = numbers_of_train_ > 0 ? numbers_of_train_ : rows_.empty() ? 0 : std::ssize(rows_.front());
    return;
  }
  const bool has_labels = any();  // without one it is not known how classes are written
  const bool in_rows = kind_ == LabelKind::kClasses && has_labels && labels_.empty();
  const std::vector<std::string>* known = !of_train_.empty() ? &of_train_ : nullptr;
  if (known == nullptr && !of_model_.empty() && !in_rows && has_all(of_model_, labels_)) known = &of_model_;
  if (known != nullptr) {
    names_ = *known;
  } else if (are_named_) {
    for (const std::string& label : labels_) names_.push_back(bare(label));
    std::sort(names_.begin(), names_.end());
  }
  count_ = std::ssize(names_);
  if (kind_ == LabelKind::kClasses && !has_labels && known == nullptr) count_ = numbers_of_train_;
  if (in_rows && !rows_.empty()) {
    for (const std::vector<float>& row : rows_) count_ = std::max(count_, std::ssize(row));
    if (count_ == std::ssize(of_model_)) names_ = of_model_;
  }
  for (const std::string& label : labels_) {
    const std::int64_t number =
        names_.empty() ? static_cast<std::int64_t>(value_of(label)) : class_among(names_, label);
    classes_.push_back(static_cast<std::int32_t>(number));
    if (names_.empty()) count_ = std::max(count_, number + 1);
  }
  if (names_.empty() && !labels_.empty()) count_ = std::max(count_, count_of_model_);
}

bool LabelTable::any() const {
  return !labels_.empty() || std::any_of(rows_.begin(), rows_.end(), [](const auto& row) { return !row.empty(); });
}

std::vector<std::string> LabelTable::absent() const {
  std::vector<std::string> all;
  if (!names_.empty() || kind_ != LabelKind::kClass || count_of_model_ > 0) return all;
  std::vector<bool> is_there(static_cast<std::size_t>(count_));
  for (const std::int32_t number : classes_) is_there[static_cast<std::size_t>(number)] = true;
  for (std::size_t i = 0; i < is_there.size(); ++i) {
    if (!is_there[i]) all.push_back(std::to_string(i));
  }
  return all;
}

std::int64_t LabelTable::numbers_each() const {
  if (kind_ == LabelKind::kTags) return 0;
  return kind_ == LabelKind::kClass ? 1 : count_;
}

std::vector<float> LabelTable::numbers() const {
  std::vector<float> all;
  all.reserve(rows_.size() * static_cast<std::size_t>(numbers_each()));
  const bool in_rows = kind_ == LabelKind::kValues || labels_.empty();
  for (const std::vector<float>& row : rows_) {
    const std::size_t begin = all.size();
    if (in_rows) all.insert(all.end(), row.begin(), row.end());
    all.resize(begin + static_cast<std::size_t>(numbers_each()));
    if (in_rows) continue;
    for (const float place : row) {
      const std::int32_t number = classes_[static_cast<std::size_t>(place)];
      if (kind_ == LabelKind::kClass) {
        all[begin] = static_cast<float>(number);
      } else {
        all[begin + static_cast<std::size_t>(number)] = 1.0F;
      }
    }
  }
  return all;
}

TensorSpec LabelTable::target() const {
  if (kind_ != LabelKind::kClass) return {kTarget, Dtype::kFloat32, {kBatch, count_}, false};
  TensorSpec target{kTarget, Dtype::kInt64, {kBatch}, false};
  target.num_classes = count_;
  return target;
}

}  // namespace components::data
