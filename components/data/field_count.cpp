#include "components/data/field_count.h"

#include <algorithm>

namespace components::data {

void add_counts(std::vector<FieldCount>& to, const std::vector<FieldCount>& from) {
  for (const FieldCount& one : from) {
    const auto at = std::find_if(to.begin(), to.end(), [&one](const FieldCount& own) { return own.name == one.name; });
    if (at == to.end()) {
      to.push_back(one);
    } else {
      at->records += one.records;
      at->read += one.read;
    }
  }
}

std::vector<FieldCount> field_counts_of(const Dataset& data) {
  const auto* const counts = dynamic_cast<const CountsFields*>(&data);
  return counts != nullptr ? counts->field_counts() : std::vector<FieldCount>();
}

}  // namespace components::data
