#include "components/kernels/widen.h"

#include <algorithm>
#include <cstring>

#include "components/kernels/simd.h"

namespace components::kernels {
namespace {

template <typename Number>
[[gnu::always_inline]] inline std::uint32_t widen(const unsigned char* from, std::int64_t count,
                                                  std::int64_t* __restrict to) {
  Number largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Number number;  // a header of any length may precede it: no alignment to rely on
    std::memcpy(&number, from + i * static_cast<std::int64_t>(sizeof(Number)), sizeof(Number));
    largest = std::max(largest, number);
    to[i] = static_cast<std::int64_t>(number);
  }
  return largest;
}

}  // namespace

ROUX_SIMD std::uint32_t widen_u16(const unsigned char* from, std::int64_t count, std::int64_t* to) {
  return widen<std::uint16_t>(from, count, to);
}

ROUX_SIMD std::uint32_t widen_u32(const unsigned char* from, std::int64_t count, std::int64_t* to) {
  return widen<std::uint32_t>(from, count, to);
}

}  // namespace components::kernels
