#pragma once

#include <cstdint>

namespace components::kernels {

/// A float32 matrix in memory: element (i, j) lies at `data[i * row + j * column]`. One of the two strides is 1.
struct Matrix {
  const float* data;
  std::int64_t row, column;
};

/// `c = a b`, or `c += a b` with `add`. Every element is summed up in an order that depends on `depth` alone: a product
/// may be cut into rows and columns in any way, with the same bits.
struct Product {
  Matrix a;  ///< [rows, depth]
  Matrix b;  ///< [depth, columns]
  float* c;  ///< [rows, columns], a row every `c_row` floats
  std::int64_t c_row;
  std::int64_t rows, columns, depth;
  bool add;
};

struct ProductKernel {
  std::int64_t tile_rows, tile_columns;  ///< cuts at multiples of these waste nothing
  std::int64_t scratch;                  ///< floats that a call needs, aligned to 64 bytes
  void (*multiply)(const Product&, float* scratch);
};

/// Null where LibTorch's own products are as fast. Its MKL takes registers of 512 bits on Intel's processors only, and
/// leaves others at half of what they can do.
const ProductKernel* product_kernel();
/// For tests: as if there were none.
void pretend_no_product_kernel(bool none);

/// The kernel itself, for processors with AVX-512 F.
extern const ProductKernel product_avx512;

}  // namespace components::kernels
