#include "components/kernels/winograd.h"

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

// What 32 registers hold of a product: rows, and packs of columns.
constexpr std::int64_t kColumns = 4;
constexpr std::int64_t kRows = 4;  ///< divides Winograd::kTiles and kChannels

/// c [rows, kColumns * 16] = a [rows, depth] b [depth, columns], or that added to c.
///
/// a, a_row, a_depth  distances of its rows and columns in memory
/// b, b_pack          kColumns packs [depth, 16], so far from each other
/// c, c_row, c_pack   distances of its rows and of packs of columns
template <std::int64_t rows>
ROUX_INLINE void product(const float* a, std::int64_t a_row, std::int64_t a_depth, const float* b, std::int64_t b_pack,
                         std::int64_t depth, float* c, std::int64_t c_row, std::int64_t c_pack, bool add) {
  Floats sum[rows][kColumns];
#pragma GCC unroll 8
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (std::int64_t p = 0; p < kColumns; ++p) sum[r][p] = add ? load(c + r * c_row + p * c_pack) : Floats{};
  }
  for (std::int64_t d = 0; d < depth; ++d) {
    Floats column[kColumns];
#pragma GCC unroll 8
    for (std::int64_t p = 0; p < kColumns; ++p) column[p] = load(b + p * b_pack + d * kPack);
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < rows; ++r) {
      const float value = a[r * a_row + d * a_depth];
#pragma GCC unroll 8
      for (std::int64_t p = 0; p < kColumns; ++p) sum[r][p] += value * column[p];
    }
  }
#pragma GCC unroll 8
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (std::int64_t p = 0; p < kColumns; ++p) store(c + r * c_row + p * c_pack, sum[r][p]);
  }
}

/// From one product to the next in filters and their sums.
ROUX_INLINE std::int64_t of_filters(std::int64_t in, std::int64_t out) { return in * out + Winograd::kGap; }

/// Where a tile of 2 x 2 pixels lies.
struct Tile {
  std::int64_t sample, top, left;

  Tile(std::int64_t index, const Winograd::Images& images) {
    const std::int64_t across = (images.width + 1) / 2, down = (images.height + 1) / 2;
    left = 2 * (index % across);
    top = 2 * (index / across % down);
    sample = index / (across * down);
  }

  /// The first channel of a pixel of an image [.., channels]; `outside` beyond the border.
  template <typename T>
  T* pixel(T* images_at, const Winograd::Images& images, std::int64_t channels, std::int64_t y, std::int64_t x,
           T* outside) const {
    if (y < 0 || y >= images.height || x < 0 || x >= images.width) return outside;
    return images_at + ((sample * images.height + y) * images.width + x) * channels;
  }
};

/// Where the transformed packs of a tile go: P packs of 16 channels, `product` apart; the next channels `pack` apart.
struct Packs {
  float* at;
  std::int64_t product, pack;
};

/// B^T d B for the 4 x 4 pixels around a tile.
ROUX_INLINE void transform_input(const float* x, const Winograd::Images& images, std::int64_t channels,
                                 const Tile& tile, const float* zeros, const Packs& to) {
  const float* pixels[4][4];
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      pixels[i][j] = tile.pixel(x, images, channels, tile.top + i - 1, tile.left + j - 1, zeros);
    }
  }
  for (std::int64_t channel = 0; channel < channels; channel += kPack) {
    Floats half[4][4];
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      const Floats d0 = load(pixels[0][j] + channel), d1 = load(pixels[1][j] + channel);
      const Floats d2 = load(pixels[2][j] + channel), d3 = load(pixels[3][j] + channel);
      half[0][j] = d0 - d2;
      half[1][j] = d1 + d2;
      half[2][j] = d2 - d1;
      half[3][j] = d1 - d3;
    }
    float* out = to.at + channel / kPack * to.pack;
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < 4; ++i) {
      store(out + (4 * i + 0) * to.product, half[i][0] - half[i][2]);
      store(out + (4 * i + 1) * to.product, half[i][1] + half[i][2]);
      store(out + (4 * i + 2) * to.product, half[i][2] - half[i][1]);
      store(out + (4 * i + 3) * to.product, half[i][1] - half[i][3]);
    }
  }
}

/// A dy A^T for the 2 x 2 pixels of a tile.
ROUX_INLINE void transform_gradient(const float* dy, const Winograd::Images& images, std::int64_t channels,
                                    std::int64_t begin, std::int64_t end, const Tile& tile, const float* zeros,
                                    const Packs& to) {
  const float* pixels[2][2];
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      pixels[i][j] = tile.pixel(dy, images, channels, tile.top + i, tile.left + j, zeros);
    }
  }
  for (std::int64_t channel = begin; channel < end; channel += kPack) {
    Floats half[4][2];
#pragma GCC unroll 2
    for (std::int64_t j = 0; j < 2; ++j) {
      const Floats d0 = load(pixels[0][j] + channel), d1 = load(pixels[1][j] + channel);
      half[0][j] = d0;
      half[1][j] = d0 + d1;
      half[2][j] = d0 - d1;
      half[3][j] = -d1;
    }
    float* out = to.at + (channel - begin) / kPack * to.pack;
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < 4; ++i) {
      store(out + (4 * i + 0) * to.product, half[i][0]);
      store(out + (4 * i + 1) * to.product, half[i][0] + half[i][1]);
      store(out + (4 * i + 2) * to.product, half[i][0] - half[i][1]);
      store(out + (4 * i + 3) * to.product, -half[i][1]);
    }
  }
}

/// A^T m A into the 2 x 2 pixels of a tile, as far as there are. m: P rows of channels, `product` apart.
ROUX_INLINE void transform_output(const float* m, std::int64_t product, float* y, const Winograd::Images& images,
                                  std::int64_t channels, const Tile& tile) {
  float* pixels[2][2];
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      pixels[i][j] = tile.pixel<float>(y, images, channels, tile.top + i, tile.left + j, nullptr);
    }
  }
  for (std::int64_t channel = 0; channel < channels; channel += kPack) {
    Floats half[2][4];
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      const float* column = m + j * product + channel;
      const Floats m0 = load(column), m1 = load(column + 4 * product);
      const Floats m2 = load(column + 8 * product), m3 = load(column + 12 * product);
      half[0][j] = m0 + m1 + m2;
      half[1][j] = m1 - m2 - m3;
    }
#pragma GCC unroll 2
    for (std::int64_t i = 0; i < 2; ++i) {
      if (pixels[i][0] != nullptr) store(pixels[i][0] + channel, half[i][0] + half[i][1] + half[i][2]);
      if (pixels[i][1] != nullptr) store(pixels[i][1] + channel, half[i][1] - half[i][2] - half[i][3]);
    }
  }
}

/// G g G^T of 16 filters at a time: those of 16 outputs for one input, or turned the other way round.
void transform_filters(const Winograd::Filters& a) {
  const std::int64_t depth = a.turned ? a.out : a.in;
  for (std::int64_t pack = a.begin; pack < a.end; ++pack) {
    for (std::int64_t d = 0; d < depth; ++d) {
      float g[9][kPack];
      for (std::int64_t lane = 0; lane < kPack; ++lane) {
        const std::int64_t out = a.turned ? d : pack * kPack + lane, in = a.turned ? pack * kPack + lane : d;
        const float* filter = a.weight + (out * a.in + in) * 9;
        for (std::int64_t i = 0; i < 9; ++i) g[a.turned ? 8 - i : i][lane] = filter[i];
      }
      Floats half[4][3];
      for (std::int64_t j = 0; j < 3; ++j) {
        const Floats g0 = load(g[j]), g1 = load(g[3 + j]), g2 = load(g[6 + j]);
        half[0][j] = g0;
        half[1][j] = 0.5F * (g0 + g2 + g1);
        half[2][j] = 0.5F * (g0 + g2 - g1);
        half[3][j] = g2;
      }
      for (std::int64_t i = 0; i < 4; ++i) {
        const Floats g0 = half[i][0], g1 = half[i][1], g2 = half[i][2];
        const Floats whole[4] = {g0, 0.5F * (g0 + g2 + g1), 0.5F * (g0 + g2 - g1), g2};
        for (std::int64_t j = 0; j < 4; ++j) {
          store(a.transformed + (4 * i + j) * of_filters(a.in, a.out) + (pack * depth + d) * kPack, whole[j]);
        }
      }
    }
  }
}

ROUX_INLINE std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

void convolve(const Winograd::Convolution& a) {
  float* zeros = a.space;
  float* input = zeros + a.in;  // [P, tiles, in]
  const std::int64_t of_input = Winograd::kTiles * a.in + Winograd::kGap;
  const std::int64_t of_result = Winograd::kTiles * a.out + Winograd::kGap;
  float* result = input + Winograd::kProducts * of_input;  // [P, tiles, out]
  for (std::int64_t i = 0; i < a.in; ++i) zeros[i] = 0;
  for (std::int64_t first = a.begin; first < a.end; first += Winograd::kTiles) {
    const std::int64_t tiles = least(Winograd::kTiles, a.end - first);
    for (std::int64_t t = 0; t < tiles; ++t) {
      transform_input(a.x, a.images, a.in, Tile(first + t, a.images), zeros, {input + t * a.in, of_input, kPack});
    }
    for (std::int64_t p = 0; p < Winograd::kProducts; ++p) {
      for (std::int64_t column = 0; column < a.out; column += kColumns * kPack) {
        const float* filters = a.transformed + p * of_filters(a.in, a.out) + column * a.in;
        // Rows behind the last tile are what another one left there; nobody reads what becomes of them.
        for (std::int64_t t = 0; t < tiles; t += kRows) {
          product<kRows>(input + p * of_input + t * a.in, a.in, 1, filters, a.in * kPack, a.in,
                         result + p * of_result + t * a.out + column, a.out, kPack, false);
        }
      }
    }
    for (std::int64_t t = 0; t < tiles; ++t) {
      transform_output(result + t * a.out, of_result, a.y, a.images, a.out, Tile(first + t, a.images));
    }
  }
}

void sum_gradient(const Winograd::Gradient& a) {
  const std::int64_t width = a.out_end - a.out_begin;
  const std::int64_t widest = a.in < a.out ? a.out : a.in;
  float* zeros = a.space;
  float* input = zeros + widest;  // [P, in / 16, tiles, 16]
  const std::int64_t of_pack = Winograd::kTiles * kPack;
  const std::int64_t of_input = Winograd::kTiles * a.in + Winograd::kGap;
  const std::int64_t of_gradient = Winograd::kTiles * width + Winograd::kGap;
  float* gradient = input + Winograd::kProducts * of_input;  // [P, width / 16, tiles, 16]
  for (std::int64_t i = 0; i < widest; ++i) zeros[i] = 0;
  for (std::int64_t first = a.begin; first < a.end; first += Winograd::kTiles) {
    const std::int64_t tiles = least(Winograd::kTiles, a.end - first);
    for (std::int64_t t = 0; t < tiles; ++t) {
      const Tile tile(first + t, a.images);
      transform_input(a.x, a.images, a.in, tile, zeros, {input + t * kPack, of_input, of_pack});
      transform_gradient(a.dy, a.images, a.out, a.out_begin, a.out_end, tile, zeros,
                         {gradient + t * kPack, of_gradient, of_pack});
    }
    for (std::int64_t p = 0; p < Winograd::kProducts; ++p) {
      for (std::int64_t column = 0; column < width; column += kColumns * kPack) {
        float* sums = a.sums + p * of_filters(a.in, a.out) + (a.out_begin + column) * a.in;
        const float* columns = gradient + p * of_gradient + Winograd::kTiles * column;
        for (std::int64_t channel = 0; channel < a.in; channel += kRows) {
          const float* rows = input + p * of_input + Winograd::kTiles * (channel / kPack * kPack) + channel % kPack;
          product<kRows>(rows, 1, kPack, columns, of_pack, tiles, sums + channel * kPack, kPack, a.in * kPack,
                         first > a.begin);
        }
      }
    }
  }
}

/// G^T u G of 16 outputs at a time.
void finish_gradient(const Winograd::FilterGradient& a) {
  const std::int64_t of_product = of_filters(a.in, a.out), of_sums = Winograd::filters_space(a.in, a.out);
  for (std::int64_t out = a.out_begin; out < a.out_end; out += kPack) {
    for (std::int64_t in = 0; in < a.in; ++in) {
      Floats half[3][4];
      for (std::int64_t j = 0; j < 4; ++j) {
        Floats u[4];
        for (std::int64_t i = 0; i < 4; ++i) {
          const float* at = a.sums + (4 * i + j) * of_product + out * a.in + in * kPack;
          u[i] = load(at);
          for (std::int64_t s = 1; s < a.count; ++s) u[i] += load(at + s * of_sums);
        }
        half[0][j] = u[0] + 0.5F * (u[1] + u[2]);
        half[1][j] = 0.5F * (u[1] - u[2]);
        half[2][j] = 0.5F * (u[1] + u[2]) + u[3];
      }
      float g[9][kPack];
      for (std::int64_t i = 0; i < 3; ++i) {
        const Floats* u = half[i];
        store(g[3 * i], u[0] + 0.5F * (u[1] + u[2]));
        store(g[3 * i + 1], 0.5F * (u[1] - u[2]));
        store(g[3 * i + 2], 0.5F * (u[1] + u[2]) + u[3]);
      }
      for (std::int64_t lane = 0; lane < kPack; ++lane) {
        float* filter = a.dweight + ((out + lane) * a.in + in) * 9;
        for (std::int64_t i = 0; i < 9; ++i) filter[i] = g[i][lane];
      }
    }
  }
}

}  // namespace
}  // namespace avx512

const Winograd winograd_avx512 = {&avx512::transform_filters, &avx512::convolve, &avx512::sum_gradient,
                                  &avx512::finish_gradient};

}  // namespace components::kernels
