#pragma once

#include <cstdint>

namespace components::kernels {

/// Sum of the squares of `count` numbers, in double precision and always in the same order.
double square_sum(const float* numbers, std::int64_t count);

}  // namespace components::kernels
