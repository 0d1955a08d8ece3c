#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "components/data/data.h"

namespace components::data {

/// A field of the records of a set.
struct FieldCount {
  std::string name;
  std::int64_t records = 0;  ///< that have something in it
  std::int64_t read = 0;     ///< of those
};

/// Counts of the same fields in several sets, together.
void add_counts(std::vector<FieldCount>& to, const std::vector<FieldCount>& from);

/// A data set that can say which fields its records have.
class CountsFields {
 public:
  CountsFields() = default;
  CountsFields(const CountsFields&) = default;
  CountsFields& operator=(const CountsFields&) = default;
  virtual ~CountsFields() = default;

  /// Of the records that were encoded so far, which of a set in memory are all, of a stream those of the first pass;
  /// empty where they have no fields.
  virtual std::vector<FieldCount> field_counts() const = 0;
};

/// Those of a set that counts them; empty for another.
std::vector<FieldCount> field_counts_of(const Dataset& data);

}  // namespace components::data
