// Products of rows with rows, `a b^T`: both lie in memory along the depth, as a linear layer's input and weight do, so
// nothing is copied into panels first. One register of sums for each element; a tile holds as many as the level has.

namespace components::kernels {
namespace ROUX_LEVEL {
namespace {

// One register; packs that take several would lie in memory. A level with 512 bits has 32 of them, the others 16.
constexpr std::int64_t kLanes = ROUX_LANES;
constexpr bool kManyRegisters = kLanes == 16;
constexpr int kDotRows = kManyRegisters ? 6 : 3, kDotColumns = kManyRegisters ? 4 : 3;
constexpr int kFewRowsColumns = kManyRegisters ? 8 : 6;
using Lanes = float __attribute__((vector_size(4 * kLanes)));
using LaneBits = std::uint32_t __attribute__((vector_size(4 * kLanes)));
using LaneHalves = std::uint16_t __attribute__((vector_size(2 * kLanes)));

// What passes by of each side before the other one moves on: together they stay in the second-level cache.
constexpr std::int64_t kRowsAtOnce = 16 * kDotRows, kColumnsAtOnce = 48;

/// What one step along the depth reads of a row.
template <typename T>
constexpr std::int64_t kStep = kLanes;

ROUX_INLINE Lanes load_step(const float* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

#if defined(ROUX_ROUNDS_BF16)
/// Two neighbours in each lane.
template <>
constexpr std::int64_t kStep<Bf16> = 2 * kLanes;
ROUX_INLINE Lanes load_step(const Bf16* from) {
  Lanes pairs;
  std::memcpy(&pairs, from, sizeof pairs);
  return pairs;
}
#else
ROUX_INLINE Lanes load_step(const Bf16* from) {
  LaneHalves x;
  std::memcpy(&x, from, sizeof x);
  return reinterpret_cast<Lanes>(__builtin_convertvector(x, LaneBits) << 16);
}
#endif

/// The last `some` elements, and zeros.
template <typename T>
ROUX_INLINE Lanes load_step(const T* from, std::int64_t some) {
  T last[kStep<T>] = {};
  std::memcpy(static_cast<void*>(last), from, static_cast<std::size_t>(some) * sizeof(T));
  return load_step(last);
}

template <typename T>
ROUX_INLINE Lanes add_products(Lanes sums, Lanes a, Lanes b) {
#if defined(ROUX_ROUNDS_BF16)
  if constexpr (std::is_same_v<T, Bf16>) {
    return reinterpret_cast<Lanes>(
        _mm512_dpbf16_ps(reinterpret_cast<__m512>(sums), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
  }
#endif
  return sums + a * b;
}

/// Adds to each lane the one whose number differs in the bit `Step`.
template <std::uint32_t Step>
ROUX_INLINE Lanes fold(Lanes x) {
  LaneBits other = {};
#pragma GCC unroll 16
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) other[lane] = lane ^ Step;
  return x + __builtin_shuffle(x, other);
}

/// The same of two at once: lanes without the bit are of `x`, those with it of `y`.
template <std::uint32_t Step>
ROUX_INLINE Lanes fold(Lanes x, Lanes y) {
  LaneBits own = {}, other = {};
#pragma GCC unroll 16
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const bool of_y = (lane & Step) != 0;
    own[lane] = of_y ? lane + kLanes : lane;
    other[lane] = of_y ? lane - Step + kLanes : lane + Step;
  }
  return __builtin_shuffle(x, y, own) + __builtin_shuffle(x, y, other);
}

/// The lanes of `Count` registers, a power of two, are added up by halves: `x[0]` ends with a sum in each lane.
template <std::uint32_t Step, int Count>
ROUX_INLINE void fold_all(Lanes* x) {
  if constexpr (Step > 0) {
    if constexpr (Count == 1) {
      x[0] = fold<Step>(x[0]);
      fold_all<Step / 2, 1>(x);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < Count / 2; ++i) x[i] = fold<Step>(x[2 * i], x[2 * i + 1]);
      fold_all<Step / 2, Count / 2>(x);
    }
  }
}

/// Where the sum of register `i` ends: its lowest bit chose the lane's highest one.
constexpr int lane_of(int i) {
  int lane = 0;
  for (auto step = static_cast<int>(kLanes) / 2; step > 0; step /= 2, i /= 2) lane += (i % 2) * step;
  return lane;
}

/// The sum of each of `Count` registers, by the same tree whatever Count is.
template <int Count>
ROUX_INLINE void add_up_each(const Lanes* registers, float* sums) {
  if constexpr (Count > 0) {
    constexpr int kSome = static_cast<int>(std::bit_floor(std::min<unsigned>(Count, kLanes)));
    Lanes x[kSome];
#pragma GCC unroll 16
    for (int i = 0; i < kSome; ++i) x[i] = registers[i];
    fold_all<kLanes / 2, kSome>(x);
#pragma GCC unroll 16
    for (int i = 0; i < kSome; ++i) sums[i] = x[0][lane_of(i)];
    add_up_each<Count - kSome>(registers + kSome, sums + kSome);
  }
}

/// One tile: `Rows` rows of a by `Columns` rows of b.
template <int Rows, int Columns, typename T>
void dot_tile(const Dots<T>& p, std::int64_t row, std::int64_t column) {
  const T* const a = p.a + row * p.a_row;
  const T* const b = p.b + column * p.b_row;
  Lanes sums[Rows][Columns] = {};
  const auto step = [&](std::int64_t k, auto... some) __attribute__((always_inline)) {
    Lanes y[Columns];
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) y[j] = load_step(b + j * p.b_row + k, some...);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Lanes x = load_step(a + i * p.a_row + k, some...);
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j) sums[i][j] = add_products<T>(sums[i][j], x, y[j]);
    }
  };
  std::int64_t k = 0;
  for (; k + kStep<T> <= p.depth; k += kStep<T>) step(k);
  if (k < p.depth) step(k, p.depth - k);
  float added[Rows * Columns];
  add_up_each<Rows * Columns>(&sums[0][0], added);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    std::memcpy(p.c + (row + i) * p.c_row + column, added + i * Columns, Columns * sizeof(float));
  }
}

template <int Rows, typename T>
void dot_rows(const Dots<T>& p, std::int64_t row, std::int64_t column, std::int64_t columns) {
  constexpr int kWide = Rows == 1 ? kFewRowsColumns : kDotColumns;
  std::int64_t j = 0;
  for (; j + kWide <= columns; j += kWide) dot_tile<Rows, kWide>(p, row, column + j);
  for (; j < columns; ++j) dot_tile<Rows, 1>(p, row, column + j);
}

/// The last rows, fewer than a tile has.
template <int Rows, typename T>
void dot_rest(const Dots<T>& p, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
  if constexpr (Rows > 0) {
    if (rows == Rows) return dot_rows<Rows>(p, row, column, columns);
    dot_rest<Rows - 1>(p, row, rows, column, columns);
  }
}

template <typename T>
void dots(const Dots<T>& p) {
  for (std::int64_t row = 0; row < p.rows; row += kRowsAtOnce) {
    const std::int64_t rows = std::min(kRowsAtOnce, p.rows - row);
    for (std::int64_t column = 0; column < p.columns; column += kColumnsAtOnce) {
      const std::int64_t columns = std::min(kColumnsAtOnce, p.columns - column);
      std::int64_t i = 0;
      for (; i + kDotRows <= rows; i += kDotRows) dot_rows<kDotRows>(p, row + i, column, columns);
      dot_rest<kDotRows - 1>(p, row + i, rows - i, column, columns);
    }
  }
}

}  // namespace
}  // namespace ROUX_LEVEL
}  // namespace components::kernels
