#include "components/data/mix/turns.h"

#include <numeric>

namespace components::data {

std::size_t next_turn(std::span<const double> weights, std::span<const std::int64_t> taken) {
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto count = static_cast<double>(std::accumulate(taken.begin(), taken.end(), std::int64_t{1}));
  std::size_t next = 0;
  double most = -1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double owed = count * weights[i] / whole - static_cast<double>(taken[i]);
    if (owed <= most) continue;
    most = owed;
    next = i;
  }
  return next;
}

}  // namespace components::data
