// The kernels of product.h, included once for each type of the factors. They work on words of 32 bits: one float32, or
// two bfloat16 that follow each other along the depth.
//
// A tile of c is twelve rows by two packs: 24 of the 32 registers hold its sums, one word along the depth takes two
// packs of b and twelve words of a. Panels of b, two packs wide, are copied together for kWords words, so that one
// stays in the nearest caches while all rows pass by; kColumns of them lie side by side, so that rows of a are copied
// once for them.
//
// The includer defines ROUX_LEVEL, kWords, kColumns and `multiply_add(sums, word of a, words of b)`.
//
// Source  Goto & van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34(3), 2008

namespace components::kernels {
namespace ROUX_LEVEL {
namespace {

constexpr std::int64_t kTileRows = 12, kTilePacks = 2, kTileColumns = kTilePacks * kPack;
constexpr std::int64_t kRows = 8 * kTileRows;  // of a, which stay in the second-level cache while panels pass by
constexpr std::int64_t kScratch = kWords * (kColumns + kRows / kTileRows * kPack);

/// Elements of a word.
template <typename T>
constexpr std::int64_t kOfWord = 4 / static_cast<std::int64_t>(sizeof(T));

/// `some` words, of which the last one may lack elements: those are 0.
template <typename T>
ROUX_INLINE Floats load_words(const T* from, std::int64_t elements) {
  float words[kPack] = {};
  std::memcpy(words, from, static_cast<std::size_t>(std::min(elements, kPack * kOfWord<T>)) * sizeof(T));
  return load(words);
}
template <typename T>
ROUX_INLINE Floats load_all_words(const T* from) {
  Floats words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

/// A word of each of sixteen columns: element k of one row, or elements k and k + 1 of two.
ROUX_INLINE Floats join_rows(const float* row, const float*, std::int64_t some) {
  return some >= kPack ? load(row) : load_some(row, some);
}
ROUX_INLINE Floats join_rows(const Bf16* row, const Bf16* next, std::int64_t some) {
  if (some >= kPack && next != nullptr) return floats_of(widened(row) | (widened(next) << 16));
  const auto upper = [some](const Bf16* from) __attribute__((always_inline)) {
    return bits_of(from == nullptr ? Floats{} : some >= kPack ? load(from) : load_some(from, some));
  };
  return floats_of((upper(row) >> 16) | upper(next));
}

/// The same of two packs of columns, of which the second one begins `Apart` after the first; all of them can be read.
template <std::uint32_t Apart>
ROUX_INLINE void join_rows(const float* row, const float*, Floats& first, Floats& second) {
  first = load(row);
  second = load(row + Apart);
}
template <std::uint32_t Apart>
ROUX_INLINE void join_rows(const Bf16* row, const Bf16* next, Floats& first, Floats& second) {
  ManyHalves upper, lower, of_first, of_second;
  std::memcpy(&upper, row, sizeof upper);
  std::memcpy(&lower, next, sizeof lower);
#pragma GCC unroll 32
  for (std::uint16_t lane = 0; lane < 2 * kPack; ++lane) {
    of_first[lane] = static_cast<std::uint16_t>(lane / 2 + lane % 2 * 2 * kPack);
    of_second[lane] = static_cast<std::uint16_t>(of_first[lane] + Apart);
  }
  first = reinterpret_cast<Floats>(__builtin_shuffle(upper, lower, of_first));
  second = reinterpret_cast<Floats>(__builtin_shuffle(upper, lower, of_second));
}

/// Exchanges the packs' numbers with those of lanes whose bit `Step` differs; for 1, 2, 4 and 8 this transposes.
template <std::uint32_t Step>
ROUX_INLINE void exchange(Floats (&x)[kPack]) {
  Bits low = {}, high = {};
#pragma GCC unroll 16
  for (std::uint32_t lane = 0; lane < kPack; ++lane) {
    low[lane] = (lane & Step) == 0 ? lane : lane - Step + kPack;
    high[lane] = (lane & Step) == 0 ? lane + Step : lane + kPack;
  }
#pragma GCC unroll 16
  for (std::uint32_t i = 0; i < kPack; ++i) {
    if ((i & Step) != 0) continue;
    const Floats a = x[i], b = x[i + Step];
    x[i] = __builtin_shuffle(a, b, low);
    x[i + Step] = __builtin_shuffle(a, b, high);
  }
}

/// Rows of a, or columns of b, cut into panels: [panel][words][width], of which the first `tile` of a `width` are used
/// and the others hold anything.
struct Panels {
  std::int64_t tile, width, words;
  template <typename Float>
  Float* at(Float* panels, std::int64_t first) const {
    return panels + first / tile * width * words;
  }
};
constexpr Panels kPanelsOfA{kTileRows, kPack, kWords}, kPanelsOfB{kTileColumns, kTileColumns, kWords};

template <typename T>
constexpr std::int64_t words_of(std::int64_t depth) {
  return (depth + kOfWord<T> - 1) / kOfWord<T>;
}

/// Rows of a turned factor lie far apart, and the processor does not foresee that the next ones are read.
constexpr std::int64_t kWordsAhead = 8;
constexpr std::int64_t kWordsAtOnce = 4;

/// copy_panels() where what follows across lies side by side in memory, for panels of `Tile` and `Width`: packs in
/// pairs, and one by one what makes no pair.
template <std::int64_t Tile, std::int64_t Width, typename T>
void copy_rows(const T* from, std::int64_t along, std::int64_t count, std::int64_t readable, std::int64_t depth,
               std::int64_t panel_words, float* to) {
  constexpr std::int64_t kApart = std::min(Tile, kPack), kPair = 2 * kApart;
  const auto target = [=](std::int64_t first, std::int64_t word) __attribute__((always_inline)) {
    return to + first / Tile * Width * panel_words + word * Width + first % Tile;
  };
  const std::int64_t words = words_of<T>(depth), whole = depth / kOfWord<T>, step = kOfWord<T> * along;
  for (std::int64_t k = 0; k < words; k += kWordsAtOnce) {
    const T* const rows = from + k * step;
    std::int64_t first = 0;
    for (; k + kWordsAtOnce <= whole && first + kPair <= count && first + 2 * kPack <= readable; first += kPair) {
      float* const pack = target(first, k);
      float* const other = target(first + kApart, k);
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < kWordsAtOnce; ++i) {
        const T* const row = rows + i * step + first;
        for (std::int64_t j = 0; j < kOfWord<T>; ++j) __builtin_prefetch(row + kWordsAhead * step + j * along);
        Floats x, y;
        join_rows<kApart>(row, row + along, x, y);
        store(pack + i * Width, x);
        store(other + i * Width, y);
      }
    }
    for (; first < count; first += kApart) {
      for (std::int64_t i = 0; i < std::min(kWordsAtOnce, words - k); ++i) {
        const T* const row = rows + i * step + first;
        store(target(first, k + i), join_rows(row, k + i < whole ? row + along : nullptr, readable - first));
      }
    }
  }
}

/// Copies `count` rows of a, or columns of b, into panels. `across` leads from one of them to the next, `along` to the
/// next step of the depth. Of `readable` ones, which may be more, a pack may be filled: part of a pack takes longer
/// than a whole one.
template <typename T>
void copy_panels(const T* from, std::int64_t across, std::int64_t along, std::int64_t count, std::int64_t readable,
                 std::int64_t depth, const Panels& shape, float* to) {
  const std::int64_t words = words_of<T>(depth);
  if (across == 1) {
    const bool of_a = shape.tile == kTileRows;
    const auto copy = of_a ? &copy_rows<kTileRows, kPack, T> : &copy_rows<kTileColumns, kTileColumns, T>;
    return copy(from, along, count, readable, depth, shape.words, to);
  }
  for (std::int64_t first = 0; first < count; first += shape.tile) {
    for (std::int64_t pack = 0; pack < shape.tile; pack += kPack) {
      const T* const start = from + (first + pack) * across;
      const std::int64_t some = std::clamp<std::int64_t>(count - first - pack, 0, kPack);
      for (std::int64_t k = 0; k < words; k += kPack) {
        const std::int64_t left = depth - k * kOfWord<T>;
        const bool whole = left >= kPack * kOfWord<T>;
        Floats x[kPack];
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kPack; ++i) {
          const T* row = start + i * across + k * kOfWord<T>;
          x[i] = i >= some ? Floats{} : whole ? load_all_words(row) : load_words(row, left);
        }
        exchange<1>(x);
        exchange<2>(x);
        exchange<4>(x);
        exchange<8>(x);
        float* const target = shape.at(to, first) + k * shape.width + pack;
        for (std::int64_t i = 0; i < std::min(kPack, words - k); ++i) store(target + i * shape.width, x[i]);
      }
    }
  }
}

template <typename Out>
struct Target {
  Out* c;
  std::int64_t row, rows, columns;
  bool add;
};

template <typename Out>
void store_part(const Floats (&sums)[kTileRows][kTilePacks], const Target<Out>& to) {
  for (std::int64_t i = 0; i < to.rows; ++i) {
    for (std::int64_t j = 0; j < to.columns; j += kPack) {
      Out* const c = to.c + i * to.row + j;
      const std::int64_t some = std::min(kPack, to.columns - j);
      const Floats sum = sums[i][j / kPack];
      store_some(c, to.add ? load_some(c, some) + sum : sum, some);
    }
  }
}

/// One tile. Word k of row i of a lies at `a[i * row + k * step]`; b is a panel.
template <typename T, typename Out>
ROUX_INLINE void tile(const T* a, std::int64_t row, std::int64_t step, const float* b, std::int64_t words,
                      const Target<Out>& to) {
  // Zeros one by one, and an array of their own for what takes its address: else all of them begin in memory, which the
  // compiler fills with an instruction of a hundred cycles.
  Floats sums[kTileRows][kTilePacks];
#pragma GCC unroll 12
  for (std::int64_t i = 0; i < kTileRows; ++i) sums[i][0] = sums[i][1] = Floats{};
  for (std::int64_t k = 0; k < words; ++k, a += step, b += kTileColumns) {
    const Floats left = load(b), right = load(b + kPack);
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      float word;
      std::memcpy(&word, a + i * row, sizeof word);
      const Floats of_a = spread(word);
      sums[i][0] = multiply_add(sums[i][0], of_a, left);
      sums[i][1] = multiply_add(sums[i][1], of_a, right);
    }
  }
  if (to.rows < kTileRows || to.columns < kTileColumns) {
    Floats kept[kTileRows][kTilePacks];
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      kept[i][0] = sums[i][0];
      kept[i][1] = sums[i][1];
    }
    return store_part(kept, to);
  }
#pragma GCC unroll 12
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    Out* c = to.c + i * to.row;
    store(c, to.add ? load(c) + sums[i][0] : sums[i][0]);
    store(c + kPack, to.add ? load(c + kPack) + sums[i][1] : sums[i][1]);
  }
}

/// A tile whose rows of a lie side by side in memory, and one whose rows were copied together.
template <typename T, typename Out>
void tile_of_rows(const T* a, std::int64_t row, const float* b, std::int64_t words, const Target<Out>& to) {
  tile(a, row, kOfWord<T>, b, words, to);
}
template <typename Out>
void tile_of_panel(const float* a, const float* b, std::int64_t words, const Target<Out>& to) {
  tile(a, 1, kPack, b, words, to);
}

template <typename T>
PackedMatrix pack(const Matrix<T>& b, std::int64_t columns, std::int64_t depth, float* panels) {
  const std::int64_t words = words_of<T>(depth);
  copy_panels(b.data, b.column, b.row, columns, columns, depth, {kTileColumns, kTileColumns, words}, panels);
  return {panels, words};
}

template <typename T>
std::int64_t packed_size(std::int64_t columns, std::int64_t depth) {
  return (columns + kTileColumns - 1) / kTileColumns * kTileColumns * words_of<T>(depth);
}

/// Panels of b from some column and word on.
struct PanelsOfB {
  Panels shape;
  const float* first;
};

/// Rows of a against all panels of b.
template <typename T, typename Out>
void multiply_rows(const Product<T, Out>& p, std::int64_t first_row, std::int64_t first_column, std::int64_t first_step,
                   const PanelsOfB& b_panels, float* a_panels) {
  const std::int64_t rows = std::min(kRows, p.rows - first_row), columns = std::min(kColumns, p.columns - first_column);
  const std::int64_t depth = std::min(kWords * kOfWord<T>, p.depth - first_step);
  const std::int64_t words = words_of<T>(depth);
  const T* const a = p.a.data + first_row * p.a.row + first_step * p.a.column;
  // Rows that lie side by side in memory are read where they are, all but those that fill no tile or no word.
  const bool fits = p.a.column == 1 && depth % kOfWord<T> == 0;
  const std::int64_t in_place = fits ? rows / kTileRows * kTileRows : 0;
  copy_panels(a + in_place * p.a.row, p.a.row, p.a.column, rows - in_place, p.rows - first_row - in_place, depth,
              kPanelsOfA, kPanelsOfA.at(a_panels, in_place));
  for (std::int64_t j = 0; j < columns; j += kTileColumns) {
    const float* const b = b_panels.shape.at(b_panels.first, j);
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      const Target<Out> to{p.c + (first_row + i) * p.c_row + first_column + j, p.c_row, std::min(kTileRows, rows - i),
                           std::min(kTileColumns, columns - j), p.add || first_step > 0};
      if (i < in_place) {
        tile_of_rows(a + i * p.a.row, p.a.row, b, words, to);
      } else {
        tile_of_panel(kPanelsOfA.at(a_panels, i), b, words, to);
      }
    }
  }
}

/// Those of b that were copied before, or copies in `room`.
template <typename T, typename Out>
PanelsOfB panels_of_b(const Product<T, Out>& p, std::int64_t column, std::int64_t step, float* room) {
  if (p.packed.panels != nullptr) {
    const Panels shape{kTileColumns, kTileColumns, p.packed.words};
    return {shape, shape.at(p.packed.panels, column) + step / kOfWord<T> * shape.width};
  }
  const std::int64_t columns = std::min(kColumns, p.columns - column);
  const std::int64_t depth = std::min(kWords * kOfWord<T>, p.depth - step);
  copy_panels(p.b.data + step * p.b.row + column * p.b.column, p.b.column, p.b.row, columns, columns, depth, kPanelsOfB,
              room);
  return {kPanelsOfB, room};
}

template <typename T, typename Out>
void multiply(const Product<T, Out>& p, float* scratch) {
  float* const b_panels = scratch;
  float* const a_panels = scratch + kWords * kColumns;
  for (std::int64_t column = 0; column < p.columns; column += kColumns) {
    for (std::int64_t step = 0; step < p.depth; step += kWords * kOfWord<T>) {
      const PanelsOfB b = panels_of_b(p, column, step, b_panels);
      for (std::int64_t row = 0; row < p.rows; row += kRows) multiply_rows(p, row, column, step, b, a_panels);
    }
  }
}

}  // namespace
}  // namespace ROUX_LEVEL
}  // namespace components::kernels
