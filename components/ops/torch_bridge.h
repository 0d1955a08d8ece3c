#pragma once

// Between LibTorch's tensors and the kernels, which know none of it. T is float or kernels::Bf16.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>

#include "components/kernels/transformer.h"
#include "runner/core/tensor_fwd.h"

namespace components::kernels {

/// Elements of a contiguous tensor of that type; null for an undefined one.
template <typename T>
T* data(const at::Tensor& tensor);

/// Not initialised; in a MetaPass on the meta device.
template <typename T>
at::Tensor new_tensor(std::initializer_list<std::int64_t> shape);
template <typename T>
at::Tensor new_like(const at::Tensor& tensor);

/// Cuts rows into as many pieces as there are threads and calls `f(piece, begin, end)`, side by side. The cut depends
/// on nothing else, so sums by piece give the same bits each time. In a MetaPass it calls nothing.
void parallel_for_rows(std::int64_t rows, const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f);

/// In a MetaPass, where no piece allocates: the space of the pieces of `rows` rows, `floats` each. Undefined otherwise.
at::Tensor meta_workspace(std::int64_t rows, std::int64_t floats);

/// Sums over rows that pieces make by themselves, added up at the end. Without `wanted` it holds nothing.
class PieceSums {
 public:
  PieceSums(bool wanted, std::int64_t width);
  ~PieceSums();
  PieceSums(const PieceSums&) = delete;
  PieceSums& operator=(const PieceSums&) = delete;

  float* of(std::int64_t piece) const;  ///< [width]; null when nothing is wanted
  at::Tensor total() const;             ///< [width]; undefined when nothing is wanted

 private:
  std::int64_t width_;
  std::unique_ptr<at::Tensor> sums_;
};

/// The tensor in the type of the products: itself, or a copy rounded to bfloat16.
template <typename T>
at::Tensor lowered(const at::Tensor& tensor);
/// Rounded to bfloat16 into a contiguous tensor of the same sizes.
void lower_into(const at::Tensor& low, const at::Tensor& tensor);

}  // namespace components::kernels
