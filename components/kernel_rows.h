#pragma once

// Between LibTorch's tensors and the kernels, which know none of it.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>

#include "components/kernels/transformer.h"

namespace components::kernels {

template <typename T>
struct ScalarTypeOf;
template <>
struct ScalarTypeOf<float> {
  static constexpr at::ScalarType value = at::kFloat;
};
template <>
struct ScalarTypeOf<Bf16> {
  static constexpr at::ScalarType value = at::kBFloat16;
};

/// Elements of a contiguous tensor of that type; null for an undefined one.
template <typename T>
T* data(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  return static_cast<T*>(tensor.data_ptr());
}

template <typename T>
at::Tensor new_tensor(at::IntArrayRef shape) {
  return at::empty(shape, at::TensorOptions().dtype(ScalarTypeOf<T>::value));
}

/// Cuts rows into as many pieces as there are threads and calls `f(piece, begin, end)`, side by side. The cut depends
/// on nothing else, so sums by piece give the same bits each time.
template <typename F>
void in_pieces(std::int64_t rows, const F& f) {
  const std::int64_t pieces = std::clamp<std::int64_t>(rows, 1, at::get_num_threads());
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      f(piece, rows * piece / pieces, rows * (piece + 1) / pieces);
    }
  });
}

/// Sums over rows that pieces make by themselves, added up at the end. Without `wanted` it holds nothing.
class PieceSums {
 public:
  PieceSums(bool wanted, std::int64_t width) : width_(width) {
    if (wanted) sums_ = at::zeros({at::get_num_threads(), width}, at::TensorOptions().dtype(at::kFloat));
  }
  float* of(std::int64_t piece) const { return sums_.defined() ? sums_.data_ptr<float>() + piece * width_ : nullptr; }
  at::Tensor total() const { return sums_.defined() ? at::sum(sums_, 0) : at::Tensor(); }

 private:
  std::int64_t width_;
  at::Tensor sums_;
};

/// The tensor in the type of the products: itself, or a copy rounded to bfloat16.
template <typename T>
at::Tensor lowered(const at::Tensor& tensor);
template <>
inline at::Tensor lowered<float>(const at::Tensor& tensor) {
  return tensor;
}
template <>
inline at::Tensor lowered<Bf16>(const at::Tensor& tensor) {
  const at::Tensor low = new_tensor<Bf16>(tensor.sizes());
  in_pieces(tensor.numel(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    transformer<Bf16>().lower(data<float>(tensor) + begin, data<Bf16>(low) + begin, end - begin);
  });
  return low;
}

/// The other way; for gradients of weights.
template <typename T>
at::Tensor raised(const at::Tensor& tensor);
template <>
inline at::Tensor raised<float>(const at::Tensor& tensor) {
  return tensor;
}
template <>
inline at::Tensor raised<Bf16>(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  const at::Tensor high = new_tensor<float>(dense.sizes());
  in_pieces(dense.numel(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    transformer<Bf16>().raise(data<Bf16>(dense) + begin, data<float>(high) + begin, end - begin);
  });
  return high;
}

}  // namespace components::kernels
