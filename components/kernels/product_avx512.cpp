// A tile of c is twelve rows by two packs: 24 of the 32 registers hold its sums, one step along the depth takes two
// packs of b and twelve elements of a. Panels of b, two packs wide, are copied together for kDepth steps, so that one
// fits the first-level cache while all rows pass by; kColumns of them fill half of the second-level cache.
//
// Source  Goto & van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34(3), 2008

#include "components/kernels/product.h"

#include <algorithm>
#include <cstring>

#include "components/kernels/transformer.h"

// After the headers: what they define is shared with code for every processor.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#endif
#define ROUX_LEVEL avx512
#include "components/kernels/packs.inl"

namespace components::kernels {
namespace avx512 {
namespace {

constexpr std::int64_t kTileRows = 12, kTilePacks = 2, kTileColumns = kTilePacks * kPack;
constexpr std::int64_t kDepth = 256, kColumns = 512;
constexpr std::int64_t kRows = 8 * kTileRows;  // of a, which stay in the second-level cache while panels pass by
constexpr std::int64_t kScratch = kDepth * (kColumns + kRows / kTileRows * kPack);

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

/// Rows of a, or columns of b, cut into panels: [panel][kDepth][width], of which the first `tile` of a `width` are used
/// and the others hold anything.
struct Panels {
  std::int64_t tile, width;
  float* at(float* panels, std::int64_t first) const { return panels + first / tile * width * kDepth; }
};
constexpr Panels kPanelsOfA{kTileRows, kPack}, kPanelsOfB{kTileColumns, kTileColumns};

/// Copies `count` rows of a, or columns of b, into panels. `across` leads from one of them to the next, `along` to the
/// next step of the depth.
void copy_panels(const float* from, std::int64_t across, std::int64_t along, std::int64_t count, std::int64_t depth,
                 const Panels& shape, float* to) {
  if (across == 1) {
    for (std::int64_t k = 0; k < depth; ++k, from += along) {
      for (std::int64_t first = 0; first < count; first += shape.tile) {
        float* const target = shape.at(to, first) + k * shape.width;
        for (std::int64_t i = 0; i < shape.width && first + i < count; i += kPack) {
          const std::int64_t some = count - first - i;
          store(target + i, some >= kPack ? load(from + first + i) : load_some(from + first + i, some));
        }
      }
    }
    return;
  }
  for (std::int64_t first = 0; first < count; first += shape.tile) {
    for (std::int64_t pack = 0; pack < shape.tile; pack += kPack) {
      const float* const start = from + (first + pack) * across;
      const std::int64_t some = std::clamp<std::int64_t>(count - first - pack, 0, kPack);
      for (std::int64_t k = 0; k < depth; k += kPack) {
        const std::int64_t steps = std::min(kPack, depth - k);
        Floats x[kPack];
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kPack; ++i) {
          const float* row = start + i * across + k;
          x[i] = i >= some ? Floats{} : steps == kPack ? load(row) : load_some(row, steps);
        }
        exchange<1>(x);
        exchange<2>(x);
        exchange<4>(x);
        exchange<8>(x);
        float* const target = shape.at(to, first) + k * shape.width + pack;
        for (std::int64_t i = 0; i < steps; ++i) store(target + i * shape.width, x[i]);
      }
    }
  }
}

struct Target {
  float* c;
  std::int64_t row, rows, columns;
  bool add;
};

void store_part(const Floats (&sums)[kTileRows][kTilePacks], const Target& to) {
  for (std::int64_t i = 0; i < to.rows; ++i) {
    float row[kTileColumns];
    std::memcpy(row, sums[i], sizeof row);
    float* c = to.c + i * to.row;
    for (std::int64_t j = 0; j < to.columns; ++j) c[j] = to.add ? c[j] + row[j] : row[j];
  }
}

/// One tile. a(i, k) lies at `a[i * row + k * step]`; b is a panel.
ROUX_INLINE void tile(const float* a, std::int64_t row, std::int64_t step, const float* b, std::int64_t depth,
                      const Target& to) {
  Floats sums[kTileRows][kTilePacks] = {};
  for (std::int64_t k = 0; k < depth; ++k, a += step, b += kTileColumns) {
    const Floats left = load(b), right = load(b + kPack);
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      const Floats of_a = all(a[i * row]);
      sums[i][0] += of_a * left;
      sums[i][1] += of_a * right;
    }
  }
  if (to.rows < kTileRows || to.columns < kTileColumns) return store_part(sums, to);
#pragma GCC unroll 12
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    float* c = to.c + i * to.row;
    store(c, to.add ? load(c) + sums[i][0] : sums[i][0]);
    store(c + kPack, to.add ? load(c + kPack) + sums[i][1] : sums[i][1]);
  }
}

/// A tile whose rows of a lie side by side in memory, and one whose rows were copied together.
void tile_of_rows(const float* a, std::int64_t row, const float* b, std::int64_t depth, const Target& to) {
  tile(a, row, 1, b, depth, to);
}
void tile_of_panel(const float* a, const float* b, std::int64_t depth, const Target& to) {
  tile(a, 1, kPack, b, depth, to);
}

/// Rows of a against all panels of b.
void multiply_rows(const Product& p, std::int64_t first_row, std::int64_t first_column, std::int64_t first_step,
                   float* b_panels, float* a_panels) {
  const std::int64_t rows = std::min(kRows, p.rows - first_row), columns = std::min(kColumns, p.columns - first_column);
  const std::int64_t depth = std::min(kDepth, p.depth - first_step);
  const float* const a = p.a.data + first_row * p.a.row + first_step * p.a.column;
  // Rows that lie side by side in memory are read where they are, all but those that fill no tile.
  const std::int64_t in_place = p.a.column == 1 ? rows / kTileRows * kTileRows : 0;
  copy_panels(a + in_place * p.a.row, p.a.row, p.a.column, rows - in_place, depth, kPanelsOfA,
              kPanelsOfA.at(a_panels, in_place));
  for (std::int64_t j = 0; j < columns; j += kTileColumns) {
    const float* const b = kPanelsOfB.at(b_panels, j);
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      const Target to{p.c + (first_row + i) * p.c_row + first_column + j, p.c_row, std::min(kTileRows, rows - i),
                      std::min(kTileColumns, columns - j), p.add || first_step > 0};
      if (i < in_place) {
        tile_of_rows(a + i * p.a.row, p.a.row, b, depth, to);
      } else {
        tile_of_panel(kPanelsOfA.at(a_panels, i), b, depth, to);
      }
    }
  }
}

void multiply(const Product& p, float* scratch) {
  float* const b_panels = scratch;
  float* const a_panels = scratch + kDepth * kColumns;
  for (std::int64_t column = 0; column < p.columns; column += kColumns) {
    const std::int64_t columns = std::min(kColumns, p.columns - column);
    for (std::int64_t step = 0; step < p.depth; step += kDepth) {
      const std::int64_t depth = std::min(kDepth, p.depth - step);
      const float* const b = p.b.data + step * p.b.row + column * p.b.column;
      copy_panels(b, p.b.column, p.b.row, columns, depth, kPanelsOfB, b_panels);
      for (std::int64_t row = 0; row < p.rows; row += kRows) multiply_rows(p, row, column, step, b_panels, a_panels);
    }
  }
}

}  // namespace
}  // namespace avx512

const ProductKernel product_avx512 = {avx512::kTileRows, avx512::kTileColumns, avx512::kScratch, &avx512::multiply};

}  // namespace components::kernels
