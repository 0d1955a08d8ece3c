#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/part/linear.h"
#include "components/part/linear_term.h"
#include "components/part/weight.h"
#include "components/tensor/tensors.h"

namespace components::adapter {

struct LowRankOptions {
  std::string name;     ///< of the layer: `h.0.attn_qkv.q_proj`
  std::string adapter;  ///< name of the adapter: `default`
  std::int64_t in = 0, rank = 0;
  std::int64_t first = 0, out = 0;  ///< the outputs [first, first + out) of the linear layer
  part::Init a, b;
  double scale = 1.0;
  double dropout = 0.0;  ///< fraction of x, in [0, 1)
  /// DoRA: the layer whose outputs are multiplied, which outlives the term and does not move; null for LoRA.
  const part::Linear* decomposed = nullptr;
};

/// LoRA: `y += scale * dropout(x) A^T B^T` with A [rank, in], `NAME.lora_A.weight`, and B [out, rank],
/// `NAME.lora_B.weight`, both float32. Products are in the type of those beside it: A and B are rounded for products in
/// bfloat16. An adapter that is not called `default` has its name in those of its tensors:
/// `NAME.lora_A.ADAPTER.weight`.
///
/// DoRA, with V = W + scale B A, the rows of W for these outputs, and a magnitude m [out],
/// `NAME.lora_magnitude_vector`: `y = m / |V| * x V^T + b`, where no gradient flows through the norm of each row of V.
/// With dropout only what is beside x W^T reads dropout(x): `y = x W^T + (m / |V| - 1) dropout(x) W^T + m / |V| * scale
/// * dropout(x) A^T B^T + b`. The computation is that of PEFT 0.21.
class LowRank final : public part::LinearTerm {
 public:
  /// Draws A, then B.
  LowRank(const LowRankOptions& options, part::WeightMaker& weights);
  ~LowRank() override;

  const std::vector<NamedTensor>& tensors() const override { return declared_.parameters(); }
  bool reads_weight() const override { return magnitude_.defined(); }
  void set_training(bool training) override { training_ = training; }
  void add(const at::Tensor& y, const at::Tensor& x) const override;
  std::unique_ptr<part::LinearTermBackward> add_to(const at::Tensor& y_NO, const at::Tensor& x_NI) const override;
  void add_rows(const at::Tensor& y_NO, const at::Tensor& x_NI) const override;

  /// Of DoRA, when the layer has its weight: the magnitude becomes |V|, so that nothing changes at first, unless it has
  /// been read from somewhere. Nothing where one of the tensors has no memory.
  void begin() const;

 private:
  bool drops() const { return training_ && options_.dropout > 0; }
  /// |V| [out] float32, below autograd.
  at::Tensor norm() const;
  void add_decomposed(const at::Tensor& y, const at::Tensor& x) const;
  /// m / |V| for weights that stay as they are between two calls, as in generation.
  const at::Tensor& kept_factors() const;

  template <typename T>
  std::unique_ptr<part::LinearTermBackward> add_product(const at::Tensor& y_NO, const at::Tensor& x_NI) const;

  LowRankOptions options_;
  part::Declared declared_;
  part::Weight a_, b_, magnitude_;
  bool training_ = true;

  struct Factors;
  mutable std::unique_ptr<Factors> factors_;  ///< of generation
};

}  // namespace components::adapter
