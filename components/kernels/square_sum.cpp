#include "components/kernels/square_sum.h"

#include "components/kernels/simd.h"

namespace components::kernels {

// As many sums as two of the widest registers hold, each in the order of its numbers, so that the compiler may compute
// them side by side.
ROUX_SIMD double square_sum(const float* numbers, std::int64_t count) {
  constexpr std::int64_t kSums = 16;
  double sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t k = 0; k < kSums; ++k) {
      const auto number = static_cast<double>(numbers[i + k]);
      sums[k] += number * number;
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < count; ++i) total += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
  return total;
}

}  // namespace components::kernels
