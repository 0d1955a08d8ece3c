#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "components/data/field_count.h"
#include "runner/core/node.h"

namespace components::data {

/// What a record is, for what to do about fields that are not read.
enum class FieldForm {
  kOther,
  kCompletion,    ///< of a prompt, which may be an instruction's
  kInstruction,   ///< one that has all that it can have
  kConversation,  ///< with a system message, if it has one
};

/// The fields of a record that have something in them, whatever they are called: `context`, `messages[].thought`.
struct FieldUse {
  std::vector<std::string> read = {}, unread = {};
  FieldForm form = FieldForm::kOther;

  bool operator==(const FieldUse&) const = default;
  /// Adds a field once. Of several values of one name, such as in messages, one that is read counts.
  void add(const std::string& name, bool is_read);
  /// Adds the fields of an object.
  void add_all(const runner::core::Node& object, const std::vector<std::string>& read_names);
};

/// Counts fields record by record, in the order in which they are met.
class FieldCounts {
 public:
  static constexpr std::size_t kNamesMax = 1000;  ///< further ones are not counted: names may be values

  void add(const FieldUse& use);
  std::vector<FieldCount> list() const;

 private:
  void count(const FieldUse& use, std::int64_t records);

  std::vector<FieldCount> counts_;
  std::unordered_map<std::string, std::size_t> places_;
  FieldUse last_;  // most records have the fields of the one before
  std::int64_t like_last_ = 0;
};

}  // namespace components::data
