#pragma once

#include <cstdint>

#include "components/kernels/four_bit.h"

namespace components::quantization {

/// How bitsandbytes keeps the numbers of a weight.
enum class Kind { kNf4, kFp4, kInt8 };

constexpr std::int64_t kBlockOfFourBits = 64;  ///< numbers that share a scale

/// Of 4 bits.
inline const kernels::FourBitTable& table_of(Kind kind) { return kind == Kind::kNf4 ? kernels::kNf4 : kernels::kFp4; }

}  // namespace components::quantization
