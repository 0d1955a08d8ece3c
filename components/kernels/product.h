#pragma once

#include <cstdint>

#include "components/kernels/transformer.h"

namespace components::kernels {

/// A matrix in memory: element (i, j) lies at `data[i * row + j * column]`. One of the two strides is 1. T is float or
/// Bf16.
template <typename T>
struct Matrix {
  const T* data;
  std::int64_t row, column;
};

/// b of several products, copied once into the panels that a kernel reads. A product may use a prefix of its depth
/// and of its columns.
struct PackedMatrix {
  const float* panels = nullptr;
  std::int64_t words = 0;  ///< of 32 bits, along the whole depth
};

/// `c = a b`, or `c += a b` with `add`, summed up in float32. Every element is summed up in an order that depends on
/// `depth` alone: a product may be cut into rows and columns in any way, with the same bits.
template <typename T, typename Out>
struct Product {
  Matrix<T> a;  ///< [rows, depth]
  Matrix<T> b;  ///< [depth, columns]
  Out* c;       ///< [rows, columns], a row every `c_row` elements
  std::int64_t c_row;
  std::int64_t rows, columns, depth;
  bool add;
  PackedMatrix packed = {};  ///< if it has panels, they stand for b
};

template <typename T>
struct ProductKernel {
  std::int64_t tile_rows, tile_columns;  ///< cuts at multiples of these waste nothing
  std::int64_t scratch;                  ///< floats that a call needs, aligned to 64 bytes
  std::int64_t low_depth_max;            ///< of multiply_low: a deeper product goes over c several times
  void (*multiply)(const Product<T, float>&, float* scratch);
  void (*multiply_low)(const Product<T, Bf16>&, float* scratch);  ///< null for float
  /// Copies b [depth, columns] into `panels`, which have this many floats.
  PackedMatrix (*pack)(const Matrix<T>& b, std::int64_t columns, std::int64_t depth, float* panels);
  std::int64_t (*packed_size)(std::int64_t columns, std::int64_t depth);
};

/// Null where LibTorch's own products are as fast. For float: its MKL takes registers of 512 bits on Intel's processors
/// only, and leaves others at half of what they can do. For Bf16: with AMX, which these kernels do not use, or where
/// bfloat16 is not multiplied faster.
template <typename T>
const ProductKernel<T>* product_kernel();
/// For tests: as if there were none.
void pretend_no_product_kernel(bool none);

/// The kernels themselves, for processors with AVX-512 F, and with AVX-512 BF16.
extern const ProductKernel<float> product_avx512;
extern const ProductKernel<Bf16> product_bf16_avx512;

}  // namespace components::kernels
