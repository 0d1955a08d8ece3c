// M: rows   N: columns   K: depth

#include "components/ops/matmul.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "components/kernels/product.h"
#include "components/ops/torch_bridge.h"

namespace components {
namespace {

using kernels::Bf16;
using kernels::Matrix;
using kernels::Product;
using kernels::ProductKernel;

constexpr std::int64_t kSmallProductMax = 1 << 15;  // multiplications; below, preparing takes longer than LibTorch does
constexpr std::int64_t kPieceBytes = 8 << 20;       // of a product that LibTorch returns in another type

bool has_unit_stride(const at::Tensor& t) { return t.stride(0) == 1 || t.stride(1) == 1; }

/// Whether it is worth preparing a product of these for our own kernels.
template <typename T>
const ProductKernel<T>* kernel_for(const at::Tensor& a, const at::Tensor& b) {
  constexpr at::ScalarType kType = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
  const bool fits = a.scalar_type() == kType && b.scalar_type() == kType && has_unit_stride(a) && has_unit_stride(b) &&
                    a.size(0) * a.size(1) * b.size(1) > kSmallProductMax;
  return fits ? kernels::product_kernel<T>() : nullptr;
}

template <typename T>
Matrix<T> matrix_of(const at::Tensor& t) {
  return {static_cast<const T*>(t.const_data_ptr()), t.stride(0), t.stride(1)};
}

std::int64_t up(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

/// Into how many rows and columns of parts a product is cut.
struct Grid {
  std::int64_t rows, columns;
};

/// The grid whose largest part is the smallest; of several the one that copies least into panels: each column of parts
/// copies a, unless it is read where it is, and each row of parts b.
template <typename T, typename Out>
Grid choose_grid(const Product<T, Out>& p, std::int64_t row_tiles, std::int64_t column_tiles, std::int64_t threads) {
  Grid best{1, 1};
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max(), least = smallest;
  for (std::int64_t rows = 1; rows <= std::min(threads, row_tiles); ++rows) {
    const std::int64_t columns = std::min(threads / rows, column_tiles);
    const std::int64_t largest = up(row_tiles, rows) * up(column_tiles, columns);
    const std::int64_t copied = (p.a.column == 1 ? 0 : p.rows * columns) + p.columns * rows;
    if (largest > smallest || (largest == smallest && copied >= least)) continue;
    smallest = largest;
    least = copied;
    best = {rows, columns};
  }
  return best;
}

template <typename T, typename Out>
void multiply(const ProductKernel<T>& kernel, void (*run)(const Product<T, Out>&, float*), const at::Tensor& out,
              const at::Tensor& a, const at::Tensor& b, bool add) {
  const Product<T, Out> whole{
      matrix_of<T>(a), matrix_of<T>(b), kernels::data<Out>(out), out.stride(0), a.size(0), b.size(1), a.size(1), add};
  const std::int64_t row_tiles = up(whole.rows, kernel.tile_rows);
  const std::int64_t column_tiles = up(whole.columns, kernel.tile_columns);
  const Grid grid = choose_grid(whole, row_tiles, column_tiles, at::get_num_threads());
  const at::Tensor scratch = kernels::new_tensor<float>({grid.rows * grid.columns, kernel.scratch});
  kernels::parallel_for_rows(grid.rows * grid.columns, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto cut = [](std::int64_t tiles, std::int64_t part, std::int64_t parts, std::int64_t tile,
                          std::int64_t all) { return std::min(tiles * part / parts * tile, all); };
      const std::int64_t r = i / grid.columns, c = i % grid.columns;
      const std::int64_t row = cut(row_tiles, r, grid.rows, kernel.tile_rows, whole.rows);
      const std::int64_t column = cut(column_tiles, c, grid.columns, kernel.tile_columns, whole.columns);
      Product<T, Out> part = whole;
      part.a.data += row * whole.a.row;
      part.b.data += column * whole.b.column;
      part.c += row * whole.c_row + column;
      part.rows = cut(row_tiles, r + 1, grid.rows, kernel.tile_rows, whole.rows) - row;
      part.columns = cut(column_tiles, c + 1, grid.columns, kernel.tile_columns, whole.columns) - column;
      run(part, kernels::data<float>(scratch) + i * kernel.scratch);
    }
  });
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (kernel_for<float>(a, b) != nullptr) return matmul_float32(a, b);
  if (const auto* kernel = kernel_for<Bf16>(a, b); kernel != nullptr && a.size(1) <= kernel->low_depth_max) {
    at::Tensor out = kernels::new_tensor<Bf16>({a.size(0), b.size(1)});
    multiply<Bf16, Bf16>(*kernel, kernel->multiply_low, out, a, b, false);
    return out;
  }
  return at::mm(a, b);
}

at::Tensor matmul_float32(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = kernels::new_tensor<float>({a.size(0), b.size(1)});
  matmul_into(out, a, b, false);
  return out;
}

void matmul_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  if (out.scalar_type() == at::kFloat) {
    if (const auto* kernel = kernel_for<float>(a, b)) return multiply(*kernel, kernel->multiply, out, a, b, add);
    if (const auto* kernel = kernel_for<Bf16>(a, b)) return multiply(*kernel, kernel->multiply, out, a, b, add);
  }
  if (const auto* kernel = kernel_for<Bf16>(a, b);
      kernel != nullptr && !add && out.scalar_type() == at::kBFloat16 && a.size(1) <= kernel->low_depth_max) {
    return multiply<Bf16, Bf16>(*kernel, kernel->multiply_low, out, a, b, false);
  }
  if (out.scalar_type() == a.scalar_type()) {
    at::Tensor target = out;
    add ? target.addmm_(a, b) : at::mm_out(target, a, b);
    return;
  }
  // The gradient of a vocabulary's weight is the largest tensor of a training: no second one beside it.
  const std::int64_t of_row = std::max<std::int64_t>(1, b.size(1) * static_cast<std::int64_t>(a.element_size()));
  const std::int64_t most = std::max<std::int64_t>(1, kPieceBytes / of_row);
  for (std::int64_t row = 0; row < out.size(0); row += most) {
    const std::int64_t rows = std::min(most, out.size(0) - row);
    at::Tensor target = out.narrow(0, row, rows);
    const at::Tensor piece = at::mm(a.narrow(0, row, rows), b);
    add ? target.add_(piece) : target.copy_(piece);
  }
}

}  // namespace components
