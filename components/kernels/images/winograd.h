#pragma once

// Convolutions of images with 3 x 3 filters, stride 1 and a border of one zero, by Winograd's minimal filtering
// F(2 x 2, 3 x 3) (Lavin & Gray, arXiv:1509.09308): a tile of 2 x 2 outputs takes 16 products for each pair of channels
// instead of 36. Images lie with the channels of a pixel side by side. For images of type T, float or Bf16; the
// latter's transformed tiles and filters are rounded to bfloat16 for the products. Sums, and what filters start from
// and are given as gradient, are float32.
//
// C: channels in   O: channels out, both multiples of kChannels   P: the 16 products of a tile

#include <cstdint>

#include "components/kernels/transformer.h"

namespace components::kernels {

template <typename T>
struct Winograd {
  /// Numbers that one lane multiplies at a time.
  static constexpr std::int64_t kStep = sizeof(float) / sizeof(T);  // NOLINT(bugprone-sizeof-expression)
  static constexpr std::int64_t kProducts = 16;
  static constexpr std::int64_t kChannels = 64;  ///< numbers of channels are multiples of it
  static constexpr std::int64_t kTiles = 48;     ///< that a call works on at a time
  static constexpr std::int64_t kGap = 16;       ///< floats between products, or all would fall on the same cache lines

  /// Images [samples, height, width, channels].
  struct Images {
    std::int64_t samples, height, width;
    std::int64_t tiles() const { return samples * ((height + 1) / 2) * ((width + 1) / 2); }
  };

  /// The filters [O, C, 3, 3] as they meet tiles: [P, O / 16, C / kStep, 16, kStep] with a gap after each product.
  /// `rotated`: those that give the gradient of the input from that of the output, where C and O change places. Packs
  /// begin to end of the 16 channels are made.
  struct Filters {
    const float* weight;
    float* transformed;
    std::int64_t out, in;
    bool rotated;
    std::int64_t begin, end;
  };

  /// Floats of such filters.
  static std::int64_t filters_workspace(std::int64_t in, std::int64_t out) {
    return kProducts * (in * out / kStep + kGap);
  }

  /// y = the convolution of x, for tiles begin to end. `workspace` holds convolution_workspace(in, out) floats.
  struct Convolution {
    const T* x;                // [.., in]
    const float* transformed;  // of filters
    T* y;                      // [.., out]
    Images images;
    std::int64_t in, out;
    float* workspace;
    std::int64_t begin, end;
  };
  static std::int64_t convolution_workspace(std::int64_t in, std::int64_t out) {
    return kProducts * (kTiles * (in + out) + 2 * kGap) + in;
  }

  /// sums [P, O / 16, C, 16] with a gap after each product: the gradients of the filters of channels out_begin to
  /// out_end (multiples of kChannels), summed over the tiles begin to end. `workspace` holds gradient_workspace()
  /// floats.
  struct Gradient {
    const T* x;   // [.., in]
    const T* dy;  // [.., out]
    float* sums;
    Images images;
    std::int64_t in, out;
    float* workspace;
    std::int64_t begin, end, out_begin, out_end;
  };
  /// Floats of the sums.
  static std::int64_t sums_workspace(std::int64_t in, std::int64_t out) { return kProducts * (in * out + kGap); }
  static std::int64_t gradient_workspace(std::int64_t in, std::int64_t out) {
    return convolution_workspace(in, out) + out;
  }

  /// dweight [O, C, 3, 3] from `count` sums that lie one after the other; channels out_begin to out_end, multiples
  /// of 16.
  struct FilterGradient {
    const float* sums;
    std::int64_t count;
    float* dweight;
    std::int64_t in, out, out_begin, out_end;
  };

  void (*transform_filters)(const Filters&);
  void (*convolve)(const Convolution&);
  void (*sum_gradient)(const Gradient&);
  void (*finish_gradient)(const FilterGradient&);
};

/// Null where LibTorch's own convolutions are as fast: without AVX-512 there are too few registers; bfloat16 needs its
/// AVX-512 instructions, and AMX multiplies faster than this.
template <typename T>
const Winograd<T>* winograd();

extern const Winograd<float> winograd_avx512;  ///< AVX-512 F, BW, DQ, VL
extern const Winograd<Bf16> winograd_bf16;     ///< AVX-512 BF16, too; x86-64 only

}  // namespace components::kernels
