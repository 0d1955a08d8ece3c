#pragma once

#include <cstdint>
#include <functional>

namespace tests {

/// What a call took, whatever else the machine does.
struct Cost {
  double seconds = 0;      ///< of processor time, of all threads
  std::int64_t bytes = 0;  ///< resident at the worst moment, above what was before
};

Cost cost_of(const std::function<void()>& call);

/// What refusing a damaged or hostile input may cost: a second and 64 MB. Fails the test case above that.
void check_cost_of_refusal(const std::function<void()>& call);

}  // namespace tests
