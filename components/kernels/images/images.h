#pragma once

// What surrounds the convolutions of an image network, each in one pass over memory. Images lie with the channels of a
// pixel side by side, so a pixel is a row: rows = samples * height * width, width = channels. Every function works on
// rows that no other call touches, so a caller may give ranges of rows to several threads. Arithmetic is float32
// whatever the type of the rows, sums over many rows are double.

#include <cstdint>

#include "components/kernels/transformer.h"

namespace components::kernels {

/// sum [width] += x - pivot, squares [width] += (x - pivot)^2, over the rows. A pivot near the mean keeps the
/// difference of the two exact.
template <typename T>
struct ChannelSums {
  const T* x;
  const float* pivot;
  double* sum;
  double* squares;
  std::int64_t rows, width;
};

/// `y = relu(x * scale + shift + addend)`; without `relu` the sum itself. addend [rows, width] or null.
template <typename T>
struct ScaleShift {
  const T* x;
  const float* scale;
  const float* shift;
  const T* addend;
  bool relu;
  T* y;
  std::int64_t rows, width;
};

/// The gradient before the ReLU, and its sums by channel: sum [width] += g, products [width] += g * (x - mean).
///
/// dy     [rows, width]
/// y      [rows, width], the output of the forward pass; null without a ReLU, or if scale and shift tell where it cut
/// scale, shift  [width] of the forward pass: without y the ReLU cut where x * scale + shift <= 0; null without a ReLU
/// g      [rows, width], where the gradient before the ReLU goes, or null
template <typename T>
struct ScaleShiftSums {
  const T* x;
  const T* dy;
  const T* y;
  const float* scale;
  const float* shift;
  const float* mean;
  T* g;
  double* sum;
  double* products;
  std::int64_t rows, width;
};

/// `dx = g * of_gradient + x * of_x + constant`, where g is dy before the ReLU (scale and shift as above).
template <typename T>
struct BatchNormBackward {
  const T* x;
  const T* dy;
  const float* scale;
  const float* shift;
  const float* of_gradient;
  const float* of_x;
  const float* constant;
  T* dx;
  std::int64_t rows, width;
};

/// The kernels for rows of type T (float or Bf16), compiled for what this processor has.
template <typename T>
struct ImageKernels {
  void (*channel_sums)(const ChannelSums<T>&);
  void (*scale_shift)(const ScaleShift<T>&);
  void (*scale_shift_sums)(const ScaleShiftSums<T>&);
  void (*batch_norm_backward)(const BatchNormBackward<T>&);
};

template <typename T>
const ImageKernels<T>& images();

}  // namespace components::kernels
