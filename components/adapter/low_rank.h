#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/part/linear_term.h"
#include "components/part/weight.h"
#include "components/tensor/tensors.h"

namespace components::adapter {

struct LowRankOptions {
  std::string name;  ///< of the layer: `h.0.attn_qkv.q_proj`
  std::int64_t in = 0, rank = 0;
  std::int64_t first = 0, out = 0;  ///< the outputs [first, first + out) of the linear layer
  part::Init a, b;
  double scale = 1.0;
  double dropout = 0.0;  ///< fraction of x, in [0, 1)
};

/// `y += scale * dropout(x) A^T B^T` with A [rank, in], `NAME.lora_A.weight`, and B [out, rank], `NAME.lora_B.weight`,
/// both float32. Products are in the type of those beside it: A and B are rounded for products in bfloat16.
class LowRank final : public part::LinearTerm {
 public:
  /// Draws A, then B.
  LowRank(const LowRankOptions& options, part::WeightMaker& weights);
  ~LowRank() override;

  const std::vector<NamedTensor>& tensors() const override { return declared_.parameters(); }
  void set_training(bool training) override { training_ = training; }
  void add(const at::Tensor& y, const at::Tensor& x) const override;
  std::unique_ptr<part::LinearTermBackward> add_to(const at::Tensor& y_NO, const at::Tensor& x_NI) const override;
  void add_rows(const at::Tensor& y_NO, const at::Tensor& x_NI) const override;

 private:
  template <typename T>
  std::unique_ptr<part::LinearTermBackward> add_product(const at::Tensor& y_NO, const at::Tensor& x_NI) const;

  LowRankOptions options_;
  part::Declared declared_;
  part::Weight a_, b_;
  bool training_ = true;
};

}  // namespace components::adapter
