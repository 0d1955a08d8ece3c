#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::cli {

/// What records have under one name.
struct FieldFacts {
  std::string name;
  std::int64_t records = 0;  ///< that have a value
  // Of what kind these are; what is of no kind here counts as none.
  std::int64_t texts = 0, whole = 0, numbers = 0, switches = 0;  ///< `numbers`: with a fraction
  std::int64_t text_lists = 0, number_lists = 0, mapping_lists = 0, empty_lists = 0, mappings = 0;
  std::set<std::string> values;        ///< different texts and numbers, at most kValuesMax
  std::int64_t changes = 0;            ///< records whose text or number is another than that of the one before
  std::int64_t newest = 0;             ///< the place of the record that first had the last one of `values`
  double mean_length = 0;              ///< of texts, in bytes
  bool is_dialogue = false;            ///< mappings of lists have `role` or `from`
  bool has_answer = false;             ///< one of those mappings is of an assistant
  std::vector<std::string> keys = {};  ///< of the first mapping, where all its values are texts
  bool has_bounds = false;             ///< texts of lists begin with `B-` or `I-`, or are `O`

  static constexpr std::size_t kValuesMax = 200;

  bool all(std::int64_t kind) const { return records > 0 && kind == records; }
};

/// Of mappings, in the order in which names come; a null is no value.
std::vector<FieldFacts> facts_of(const std::vector<core::Node>& records);

/// Null where no record has the name.
const FieldFacts* find(const std::vector<FieldFacts>& fields, const std::string& name);

}  // namespace runner::cli
