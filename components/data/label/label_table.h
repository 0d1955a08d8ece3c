#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::data {

/// Converts a JSON value to the form that LabelTable::take() reads: `"` and the name, or the digits of a number.
///
/// key       name of the field, for messages
/// Failure   the value is neither a name nor a number, or `kind` does not allow it
runner::core::Result<std::string> label_text(const runner::core::Node& value, LabelKind kind, const std::string& key);

/// The label of a whole record: one value, or of kClasses a list of them, of kValues one or a list.
runner::core::Result<std::vector<std::string>> label_texts(const runner::core::Node& label, LabelKind kind,
                                                           const std::string& key);

/// `"a", "b"`, of many the first ones.
std::string labels_text(const std::vector<std::string>& names);

/// Makes numbers of the labels of a set. Classes that are numbers are those from 0 to the largest one, or the model's
/// where it has more. Those that are names are numbered as the training set or the model has them, or, where there is
/// none that has them all, in the order of their bytes.
class LabelTable {
 public:
  /// Of the training set and the model: `inputs`.
  LabelTable(LabelKind kind, const Inputs& inputs);

  /// Takes the labels of the next record that is used, as label_text() writes them. Of tags, `tags` has for each id a
  /// place in that list, which becomes one in the table, or kPadTarget. Nothing, or why they do not fit the set.
  std::optional<runner::core::Failure> take(const std::vector<std::string>& given, std::vector<std::int32_t>& tags);
  /// Behind the last record. What follows is of the whole set.
  void finish();

  /// The class of each place.
  const std::vector<std::int32_t>& classes() const { return classes_; }
  /// Of each record [numbers_each()]: its class, 1 for each class that it has, or its values. Nothing of tags.
  std::vector<float> numbers() const;
  std::int64_t numbers_each() const;
  bool any() const;  ///< whether a record has a label
  /// The numbers of classes that no record has, of those whose count these records alone say.
  std::vector<std::string> absent() const;
  const std::vector<std::string>& names() const { return names_; }  ///< of the classes; empty where they are numbers
  std::int64_t class_count() const { return count_; }
  /// The target of a batch where it is numbers of each record.
  TensorSpec target() const;

 private:
  std::optional<runner::core::Failure> take_class(const std::string& label, std::int32_t& place);
  std::optional<runner::core::Failure> take_row(std::vector<float> row);
  std::optional<runner::core::Failure> problem_of(const std::string& label) const;

  LabelKind kind_;
  std::vector<std::string> of_train_, of_model_;  ///< names of classes
  std::int64_t count_of_model_ = 0;               ///< of its classes; 0: it does not say
  std::int64_t numbers_of_train_ = 0;             ///< of each record of the training set
  bool reads_none_;                               ///< rows to predict have no labels
  std::map<std::string, std::int32_t> places_;
  std::vector<std::string> labels_;  ///< by place
  bool are_named_ = false;           ///< by the first one
  std::vector<std::vector<float>> rows_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> classes_;  ///< by place
  std::int64_t count_ = 0;             ///< of classes, or of values of a record
};

}  // namespace components::data
