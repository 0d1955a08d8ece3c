// Masks of dropout (DropMask of transformer.h), sixteen counters of Philox at a time; after packs.inl.
//
// Counters are (16 g + lane, row, row's upper half, number of the mask): word i of lane l is that of column
// 64 g + 16 i + l. runner/train/experiment/bf16_master_weights.h has the same generator for one counter; a test
// compares the two.
//
// Source  Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (Philox4x32-10)

namespace components::kernels {
namespace ROUX_LEVEL {
namespace {

using Wides = std::uint64_t __attribute__((vector_size(64)));

struct Halves64 {
  Bits low, high;
};

/// The halves of each lane's product.
ROUX_INLINE Halves64 multiply_wide(Bits x, std::uint64_t by) {
  constexpr std::uint64_t kLow = 0xFFFF'FFFFU;
  const Wides pairs = reinterpret_cast<Wides>(x), even = (pairs & kLow) * by, odd = (pairs >> 32U) * by;
  return {reinterpret_cast<Bits>((even & kLow) | (odd << 32U)), reinterpret_cast<Bits>((even >> 32U) | (odd & ~kLow))};
}

ROUX_INLINE void philox(Bits (&words)[4], std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32U);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const Halves64 a = multiply_wide(words[0], 0xD251'1F53U), b = multiply_wide(words[2], 0xCD9E'8D57U);
    words[0] = b.high ^ words[1] ^ low;
    words[1] = b.low;
    words[2] = a.high ^ words[3] ^ high;
    words[3] = a.low;
    low += 0x9E37'79B9U;
    high += 0xBB67'AE85U;
  }
}

/// The factors of a mask, row by row.
class DropRow {
 public:
  static constexpr std::int64_t kWords = 4 * kPack;  // of one call of philox()

  DropRow(const DropMask& mask, std::int64_t columns) : mask_(mask) {
    if (mask.drops()) factors_.resize(static_cast<std::size_t>((columns + kWords - 1) / kWords * kWords));
  }

  /// Those of `row`, counted from the call's first one, until the next call; null where nothing is left out.
  const float* factors(std::int64_t row) {
    if (factors_.empty()) return nullptr;
    Bits lanes = {};
#pragma GCC unroll 16
    for (std::uint32_t lane = 0; lane < kPack; ++lane) lanes[lane] = lane;
    const std::int64_t own = mask_.first_row + row;
    const auto place = static_cast<std::uint64_t>(mask_.rows != nullptr ? mask_.rows[own] : own);
    const Bits stays = bits_of(all(mask_.scale));
    for (std::size_t first = 0; first < factors_.size(); first += kWords) {
      Bits words[4] = {lanes + static_cast<std::uint32_t>(first / 4), Bits{} + static_cast<std::uint32_t>(place),
                       Bits{} + static_cast<std::uint32_t>(place >> 32U), Bits{} + mask_.number};
      philox(words, mask_.key);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) {
        const Bits mask = reinterpret_cast<Bits>(words[i] >= mask_.threshold);
        store(factors_.data() + first + i * kPack, floats_of(mask & stays));
      }
    }
    return factors_.data();
  }

 private:
  DropMask mask_;
  std::vector<float> factors_;
};

}  // namespace
}  // namespace ROUX_LEVEL
}  // namespace components::kernels
