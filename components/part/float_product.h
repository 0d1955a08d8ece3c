#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "components/part/product.h"
#include "components/part/weight.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

/// A product with a tensor of floating-point numbers, float32 or bfloat16. A frozen one may be bfloat16 under products
/// in float32; a copy in bfloat16 of a float32 one is kept as Weight says.
class FloatProduct final : public Product {
 public:
  /// [O, I]
  explicit FloatProduct(const at::Tensor& weight) : weight_(weight) {}

  std::int64_t in() const override;
  std::int64_t out() const override;
  const at::Tensor& parameter() const override { return weight_.tensor(); }
  std::pair<const void*, std::uint32_t> version() const override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& bias) const override;
  at::Tensor as_input(const at::Tensor& x) const override;
  bool fits_nodes(bool bf16) const override;
  std::unique_ptr<ProductBackward> in_node(const at::Tensor& x_NI, at::Tensor& y_NO, bool with_backward) const override;
  bool fits_rows() const override;
  bool rows_in_bf16(bool of_pass) const override;
  at::Tensor rows(const at::Tensor& x_NI) const override;
  at::Tensor weight(std::int64_t first, std::int64_t count, bool bf16) const override;
  std::int64_t bytes() const override;

 private:
  Weight weight_;
};

}  // namespace components::part
