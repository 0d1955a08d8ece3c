#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "components/kernels/transformer.h"
#include "components/part/quantized_product.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

/// One of the layers that a QuantizedProduct joins, W [R, I] in 4 or 8 bits.
class QuantizedMatrix {
 public:
  virtual ~QuantizedMatrix() = default;

  virtual std::int64_t rows() const = 0;
  /// Of whatever bits: what tells one filling from another by its address, and where the matrix lies.
  virtual const at::Tensor& codes() const = 0;
  virtual std::int64_t bytes() const = 0;
  /// numbers [R, I] float32 on the CPU.
  virtual void fill(const at::Tensor& numbers_RI) = 0;
  /// The same bits. W of these sizes, in this form.
  virtual void fill(const runner::pretrained::PackedWeight& weight) = 0;
  virtual void move_to(const c10::Device& device) = 0;

  /// Rows [first, first + count) into [count, I], on the CPU.
  virtual void read(std::int64_t first, std::int64_t count, float* out) const = 0;
  virtual void read(std::int64_t first, std::int64_t count, kernels::Bf16* out) const = 0;
  /// Rows [first, first + count) of W times few rows x [n, I]: y [n, count], a row every `y_row`. The bits are those of
  /// kernels::dots() of what read() gives. False, and nothing done, where that is the faster way, or the only one.
  virtual bool multiply(const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t) const {
    return false;
  }
  virtual bool multiply(const kernels::Bf16*, std::int64_t /*n*/, std::int64_t /*first*/, std::int64_t /*count*/,
                        float* /*y*/, std::int64_t /*y_row*/) const {
    return false;
  }
  /// All rows by LibTorch's operations, float32, wherever they lie.
  virtual at::Tensor read_all() const = 0;

  /// Of 8 bits alone: the absmax of each row, [R].
  virtual const at::Tensor& scales() const = 0;
};

std::unique_ptr<QuantizedMatrix> make_quantized_matrix(const QuantizedForm& form, std::int64_t rows, std::int64_t in,
                                                       bool on_meta);

/// Of 8 bits: `x W^T`, [N, R] float32, as LLM.int8() computes it: each row of x is divided by its absmax and rounded to
/// 8 bits, but for columns with an absolute value of `threshold` or more in any row, which are multiplied as they are.
/// Products of 8 bits are added up exactly. By LibTorch's operations.
at::Tensor int8_products(const at::Tensor& x_NI, const QuantizedMatrix& matrix, double threshold);

}  // namespace components::part
