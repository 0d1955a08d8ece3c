#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "components/data/data.h"
#include "components/data/fields/field_counts.h"
#include "runner/core/node.h"

namespace components::data {

/// The fields of a record that would change what a training learns and are not among `read`: `system`, `tools`. One
/// that is null or empty asks for nothing. `any_form`: also those of the other forms that a record can have.
std::vector<std::string> unread_fields(const runner::core::Node& record, const std::vector<std::string>& read,
                                       bool any_form);

/// Whether a field of a message that is called so would change it.
bool says_something(std::string_view name);
/// Neither null nor empty. `value` may be null.
bool asks_for_something(const runner::core::Node* value);

/// Whether unread_fields() may name a field that is called so.
bool may_be_unread(std::string_view name);

/// What the records of a set hold and roux does not read.
class UnreadFields {
 public:
  /// `place`: file and line. Returns the fields that were not met before.
  std::vector<std::string> add(const std::vector<std::string>& fields, const std::string& place, FieldForm form);
  /// Warns of all, once, with the number of records of each. `of`: of which records, "" for all.
  void tell(const Inputs& inputs, const std::string& of = "") const;
  /// The same as a text, `tools of 19 records, such as train.jsonl:22; ...`; "" when there are none.
  std::string text() const;
  /// Of fields that a stream meets for the first time: `system is not read, such as in train.jsonl:3`.
  static std::string text_of_first(const std::vector<std::string>& fields, const std::string& place);
  /// What to do about these fields, of those that were added.
  std::string hint(const std::vector<std::string>& fields) const;

 private:
  std::vector<std::string> names() const;

  struct Field {
    std::int64_t records = 0;
    std::string first;
    std::set<FieldForm> forms;  ///< of the records
  };
  std::map<std::string, Field> fields_;
};

}  // namespace components::data
