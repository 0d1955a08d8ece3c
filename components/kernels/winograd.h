#pragma once

// Convolutions of images with 3 x 3 filters, stride 1 and a border of one zero, by Winograd's minimal filtering
// F(2 x 2, 3 x 3) (Lavin & Gray, arXiv:1509.09308): a tile of 2 x 2 outputs takes 16 products for each pair of channels
// instead of 36. Images lie with the channels of a pixel side by side. float32.
//
// C: channels in   O: channels out, both multiples of kChannels   P: the 16 products of a tile

#include <cstdint>

namespace components::kernels {

struct Winograd {
  static constexpr std::int64_t kProducts = 16;
  static constexpr std::int64_t kChannels = 64;  ///< numbers of channels are multiples of it
  static constexpr std::int64_t kTiles = 48;     ///< that a call works on at a time
  static constexpr std::int64_t kGap = 16;       ///< floats between products, or all would fall on the same cache lines

  /// Images [samples, height, width, channels].
  struct Images {
    std::int64_t samples, height, width;
    std::int64_t tiles() const { return samples * ((height + 1) / 2) * ((width + 1) / 2); }
  };

  /// The filters [O, C, 3, 3] as they meet tiles: [P, O / 16, C, 16] with a gap after each product. `turned`: those
  /// that give the gradient of the input from that of the output, where C and O change places: [P, C / 16, O, 16].
  /// Packs begin to end of the 16 channels are made.
  struct Filters {
    const float* weight;
    float* transformed;
    std::int64_t out, in;
    bool turned;
    std::int64_t begin, end;
  };

  /// Floats of such filters, and of the sums that their gradient is made of.
  static std::int64_t filters_space(std::int64_t in, std::int64_t out) { return kProducts * (in * out + kGap); }

  /// y = the convolution of x, for tiles begin to end. `space` holds convolution_space(in, out) floats.
  struct Convolution {
    const float* x;            // [.., in]
    const float* transformed;  // of filters
    float* y;                  // [.., out]
    Images images;
    std::int64_t in, out;
    float* space;
    std::int64_t begin, end;
  };
  static std::int64_t convolution_space(std::int64_t in, std::int64_t out) {
    return kProducts * (kTiles * (in + out) + 2 * kGap) + in;
  }

  /// sums, laid out as filters are: what tiles begin to end say of the filters of the channels out_begin to out_end,
  /// multiples of kChannels. `space` holds gradient_space() floats.
  struct Gradient {
    const float* x;   // [.., in]
    const float* dy;  // [.., out]
    float* sums;
    Images images;
    std::int64_t in, out;
    float* space;
    std::int64_t begin, end, out_begin, out_end;
  };
  static std::int64_t gradient_space(std::int64_t in, std::int64_t out) { return convolution_space(in, out) + out; }

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

/// Null where the processor has no AVX-512: with fewer registers LibTorch's own convolutions are as fast.
const Winograd* winograd();
extern const Winograd winograd_avx512;  ///< AVX-512 F, BW, DQ, VL

}  // namespace components::kernels
