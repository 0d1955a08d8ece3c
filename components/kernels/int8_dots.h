#pragma once

#include <cstdint>

namespace components::kernels {

/// `c = a b^T` of numbers of 8 bits, exact: no sum has more than 2^16 products.
///
/// a  [rows, depth]   b  [columns, depth]
/// c  [rows, columns], a row every `c_row`
struct Int8Dots {
  const std::int8_t *a, *b;
  std::int32_t* c;
  std::int64_t c_row;
  std::int64_t rows, columns, depth;
};

/// One thread. Rows of b are read once for all of a.
void int8_dots(const Int8Dots& p);

}  // namespace components::kernels
