// The kernels of winograd.h for numbers of type T, ROUX_NUMBER, included once for each.
//
// Numbers that meet in products lie in words of 32 bits: one float32, or two bfloat16 that follow each other along the
// depth of the product. Sizes and distances are those of words then; kStep numbers are one. The file that includes this
// one brings packs.inl, and says how words are multiplied and numbers written.

namespace components::kernels {
namespace ROUX_LEVEL {
namespace {

using T = ROUX_NUMBER;
using Kernels = Winograd<T>;
constexpr std::int64_t kStep = Kernels::kStep;

// What 32 registers hold of a product: rows, and packs of columns.
constexpr std::int64_t kColumns = 4;
constexpr std::int64_t kRows = 4;  ///< divides Kernels::kTiles and kChannels

/// c [rows, kColumns * 16] = a [rows, depth] b [depth, columns], or that added to c.
///
/// depth              in words
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
      for (std::int64_t p = 0; p < kColumns; ++p) sum[r][p] = add_product(sum[r][p], value, column[p]);
    }
  }
#pragma GCC unroll 8
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (std::int64_t p = 0; p < kColumns; ++p) store(c + r * c_row + p * c_pack, sum[r][p]);
  }
}

/// From one product to the next in filters, and in the sums that their gradient is made of.
ROUX_INLINE std::int64_t of_filters(std::int64_t in, std::int64_t out) { return in * out / kStep + Kernels::kGap; }
ROUX_INLINE std::int64_t of_sums(std::int64_t in, std::int64_t out) { return in * out + Kernels::kGap; }

/// Where a tile of 2 x 2 pixels lies.
struct Tile {
  std::int64_t sample, top, left;

  Tile(std::int64_t index, const Kernels::Images& images) {
    const std::int64_t across = (images.width + 1) / 2, down = (images.height + 1) / 2;
    left = 2 * (index % across);
    top = 2 * (index / across % down);
    sample = index / (across * down);
  }

  /// The first channel of a pixel of an image [.., channels]; `outside` beyond the border.
  template <typename Number>
  Number* pixel(Number* images_at, const Kernels::Images& images, std::int64_t channels, std::int64_t y, std::int64_t x,
                Number* outside) const {
    if (y < 0 || y >= images.height || x < 0 || x >= images.width) return outside;
    return images_at + ((sample * images.height + y) * images.width + x) * channels;
  }
};

/// B^T d B of 16 channels of the 4 x 4 pixels around a tile.
struct InputTile {
  const T* pixels[4][4];

  /// A tile behind `end` is all zeros.
  InputTile(const T* x, const Kernels::Images& images, std::int64_t channels, std::int64_t index, std::int64_t end,
            const T* zeros) {
    const Tile tile(index, images);
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 4; ++j) {
        pixels[i][j] =
            index < end ? tile.pixel(x, images, channels, tile.top + i - 1, tile.left + j - 1, zeros) : zeros;
      }
    }
  }

  ROUX_INLINE void transform(std::int64_t channel, Floats (&out)[Kernels::kProducts]) const {
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
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < 4; ++i) {
      out[4 * i + 0] = half[i][0] - half[i][2];
      out[4 * i + 1] = half[i][1] + half[i][2];
      out[4 * i + 2] = half[i][2] - half[i][1];
      out[4 * i + 3] = half[i][1] - half[i][3];
    }
  }
};

/// A dy A^T of 16 channels of the 2 x 2 pixels of a tile.
struct OutputTile {
  const T* pixels[2][2];

  OutputTile(const T* dy, const Kernels::Images& images, std::int64_t channels, std::int64_t index, std::int64_t end,
             const T* zeros) {
    const Tile tile(index, images);
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t j = 0; j < 2; ++j) {
        pixels[i][j] = index < end ? tile.pixel(dy, images, channels, tile.top + i, tile.left + j, zeros) : zeros;
      }
    }
  }

  ROUX_INLINE void transform(std::int64_t channel, Floats (&out)[Kernels::kProducts]) const {
    Floats half[4][2];
#pragma GCC unroll 2
    for (std::int64_t j = 0; j < 2; ++j) {
      const Floats d0 = load(pixels[0][j] + channel), d1 = load(pixels[1][j] + channel);
      half[0][j] = d0;
      half[1][j] = d0 + d1;
      half[2][j] = d0 - d1;
      half[3][j] = -d1;
    }
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < 4; ++i) {
      out[4 * i + 0] = half[i][0];
      out[4 * i + 1] = half[i][0] + half[i][1];
      out[4 * i + 2] = half[i][0] - half[i][1];
      out[4 * i + 3] = -half[i][1];
    }
  }
};

/// kStep tiles from `index` on as words along the depth, for channels begin to end: P packs of 16 words `product`
/// apart, those of the next channels `pack` apart.
template <typename Transformed>
ROUX_INLINE void transform_words(const T* pixels, const Kernels::Images& images, std::int64_t channels,
                                 std::int64_t begin, std::int64_t end, std::int64_t index, std::int64_t last,
                                 const T* zeros, float* to, std::int64_t product, std::int64_t pack) {
  const Transformed first(pixels, images, channels, index, last, zeros);
  const Transformed second(pixels, images, channels, index + kStep - 1, last, zeros);
  for (std::int64_t channel = begin; channel < end; channel += kPack, to += pack) {
    Floats a[Kernels::kProducts], b[Kernels::kProducts];
    first.transform(channel, a);
    if constexpr (kStep == 2) second.transform(channel, b);
#pragma GCC unroll 16
    for (std::int64_t p = 0; p < Kernels::kProducts; ++p) {
      store(to + p * product, kStep == 2 ? words(a[p], b[p]) : a[p]);
    }
  }
}

/// A^T m A into the 2 x 2 pixels of a tile, as far as there are. m: P rows of channels, `product` apart.
ROUX_INLINE void transform_output(const float* m, std::int64_t product, T* y, const Kernels::Images& images,
                                  std::int64_t channels, const Tile& tile) {
  T* pixels[2][2];
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      pixels[i][j] = tile.pixel<T>(y, images, channels, tile.top + i, tile.left + j, nullptr);
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
      if (pixels[i][0] != nullptr) put(pixels[i][0] + channel, half[i][0] + half[i][1] + half[i][2]);
      if (pixels[i][1] != nullptr) put(pixels[i][1] + channel, half[i][1] - half[i][2] - half[i][3]);
    }
  }
}

/// G g G^T of 16 filters at a time: those of 16 outputs for one input, or rotated the other way round.
ROUX_INLINE void transform_filter(const Kernels::Filters& a, std::int64_t pack, std::int64_t depth,
                                  Floats (&whole)[Kernels::kProducts]) {
  float g[9][kPack];
  for (std::int64_t lane = 0; lane < kPack; ++lane) {
    const std::int64_t out = a.rotated ? depth : pack * kPack + lane, in = a.rotated ? pack * kPack + lane : depth;
    const float* filter = a.weight + (out * a.in + in) * 9;
    for (std::int64_t i = 0; i < 9; ++i) g[a.rotated ? 8 - i : i][lane] = filter[i];
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
    whole[4 * i + 0] = g0;
    whole[4 * i + 1] = 0.5F * (g0 + g2 + g1);
    whole[4 * i + 2] = 0.5F * (g0 + g2 - g1);
    whole[4 * i + 3] = g2;
  }
}

void transform_filters(const Kernels::Filters& a) {
  const std::int64_t depth = a.rotated ? a.out : a.in;
  for (std::int64_t pack = a.begin; pack < a.end; ++pack) {
    for (std::int64_t d = 0; d < depth; d += kStep) {
      Floats first[Kernels::kProducts], second[Kernels::kProducts];
      transform_filter(a, pack, d, first);
      if constexpr (kStep == 2) transform_filter(a, pack, d + 1, second);
      for (std::int64_t p = 0; p < Kernels::kProducts; ++p) {
        store(a.transformed + p * of_filters(a.in, a.out) + (pack * depth + d) / kStep * kPack,
              kStep == 2 ? words(first[p], second[p]) : first[p]);
      }
    }
  }
}

ROUX_INLINE std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// A pixel of zeros at the beginning of `workspace`: what lies outside of an image.
ROUX_INLINE T* make_zeros(float* workspace, std::int64_t channels) {
  for (std::int64_t i = 0; i < channels; ++i) workspace[i] = 0;
  return reinterpret_cast<T*>(workspace);
}

void convolve(const Kernels::Convolution& a) {
  const T* zeros = make_zeros(a.workspace, a.in);
  const std::int64_t depth = a.in / kStep;
  const std::int64_t of_input = Kernels::kTiles * depth + Kernels::kGap;
  const std::int64_t of_result = Kernels::kTiles * a.out + Kernels::kGap;
  float* input = a.workspace + a.in;                      // [P, tiles, depth]
  float* result = input + Kernels::kProducts * of_input;  // [P, tiles, out]
  for (std::int64_t first = a.begin; first < a.end; first += Kernels::kTiles) {
    const std::int64_t tiles = least(Kernels::kTiles, a.end - first);
    for (std::int64_t t = 0; t < tiles; ++t) {
      const InputTile tile(a.x, a.images, a.in, first + t, a.end, zeros);
      for (std::int64_t channel = 0; channel < a.in; channel += kPack) {
        Floats transformed[Kernels::kProducts];
        tile.transform(channel, transformed);
        float* to = input + t * depth + channel / kStep;
#pragma GCC unroll 16
        for (std::int64_t p = 0; p < Kernels::kProducts; ++p) {
          put(reinterpret_cast<T*>(to + p * of_input), transformed[p]);
        }
      }
    }
    for (std::int64_t p = 0; p < Kernels::kProducts; ++p) {
      for (std::int64_t column = 0; column < a.out; column += kColumns * kPack) {
        const float* filters = a.transformed + p * of_filters(a.in, a.out) + column * depth;
        // Rows after the last tile hold leftovers of another one; their results are not read.
        for (std::int64_t t = 0; t < tiles; t += kRows) {
          product<kRows>(input + p * of_input + t * depth, depth, 1, filters, depth * kPack, depth,
                         result + p * of_result + t * a.out + column, a.out, kPack, false);
        }
      }
    }
    for (std::int64_t t = 0; t < tiles; ++t) {
      transform_output(result + t * a.out, of_result, a.y, a.images, a.out, Tile(first + t, a.images));
    }
  }
}

void sum_gradient(const Kernels::Gradient& a) {
  const std::int64_t width = a.out_end - a.out_begin, widest = a.in < a.out ? a.out : a.in;
  const T* zeros = make_zeros(a.workspace, widest);
  const std::int64_t of_pack = Kernels::kTiles / kStep * kPack;
  const std::int64_t of_input = Kernels::kTiles / kStep * a.in + Kernels::kGap;
  const std::int64_t of_gradient = Kernels::kTiles / kStep * width + Kernels::kGap;
  float* input = a.workspace + widest;                      // [P, in / 16, tiles / step, 16]
  float* gradient = input + Kernels::kProducts * of_input;  // [P, width / 16, tiles / step, 16]
  for (std::int64_t first = a.begin; first < a.end; first += Kernels::kTiles) {
    const std::int64_t tiles = least(Kernels::kTiles, a.end - first), depth = (tiles + kStep - 1) / kStep;
    for (std::int64_t d = 0; d < depth; ++d) {
      const std::int64_t tile = first + d * kStep;
      transform_words<InputTile>(a.x, a.images, a.in, 0, a.in, tile, a.end, zeros, input + d * kPack, of_input,
                                 of_pack);
      transform_words<OutputTile>(a.dy, a.images, a.out, a.out_begin, a.out_end, tile, a.end, zeros,
                                  gradient + d * kPack, of_gradient, of_pack);
    }
    for (std::int64_t p = 0; p < Kernels::kProducts; ++p) {
      for (std::int64_t column = 0; column < width; column += kColumns * kPack) {
        const float* columns = gradient + p * of_gradient + column / kPack * of_pack;
        float* sums = a.sums + p * of_sums(a.in, a.out) + (a.out_begin + column) * a.in;
        for (std::int64_t channel = 0; channel < a.in; channel += kRows) {
          const float* rows = input + p * of_input + channel / kPack * of_pack + channel % kPack;
          product<kRows>(rows, 1, kPack, columns, of_pack, depth, sums + channel * kPack, kPack, a.in * kPack,
                         first > a.begin);
        }
      }
    }
  }
}

/// G^T u G of 16 outputs at a time.
void finish_gradient(const Kernels::FilterGradient& a) {
  const std::int64_t of_product = of_sums(a.in, a.out), of_all = Kernels::sums_workspace(a.in, a.out);
  for (std::int64_t out = a.out_begin; out < a.out_end; out += kPack) {
    for (std::int64_t in = 0; in < a.in; ++in) {
      Floats half[3][4];
      for (std::int64_t j = 0; j < 4; ++j) {
        Floats u[4];
        for (std::int64_t i = 0; i < 4; ++i) {
          const float* at = a.sums + (4 * i + j) * of_product + out * a.in + in * kPack;
          u[i] = load(at);
          for (std::int64_t s = 1; s < a.count; ++s) u[i] += load(at + s * of_all);
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
}  // namespace ROUX_LEVEL

const Winograd<ROUX_NUMBER> ROUX_LEVEL_TABLE = {&ROUX_LEVEL::transform_filters, &ROUX_LEVEL::convolve,
                                                &ROUX_LEVEL::sum_gradient, &ROUX_LEVEL::finish_gradient};

}  // namespace components::kernels
