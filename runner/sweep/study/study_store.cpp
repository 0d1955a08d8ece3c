#include "runner/sweep/study/study_store.h"

#include <limits>

namespace runner::sweep {

double Row::real(std::size_t column) const {
  const Value& value = values_.at(column);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&value);
  return real != nullptr ? *real : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace runner::sweep
