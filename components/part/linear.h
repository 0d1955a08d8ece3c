#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/part/linear_term.h"
#include "components/part/product.h"
#include "components/part/weight.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

struct LinearOptions {
  std::int64_t in = 0, out = 0;
  Init weight;
  std::optional<Init> bias;  ///< nothing: no bias
};

/// `y = x W^T + b`, with `NAME.weight` [out, in] and `NAME.bias` [out], and the terms that were added to it.
class Linear {
 public:
  Linear(Declared& declared, const std::string& name, const LinearOptions& options);

  at::Tensor forward(const at::Tensor& x) const;  ///< [..., in] to [..., out], by LibTorch's operations
  /// Which multiplies by its weight. Nothing else reads that.
  const Product& product() const { return *product_; }
  Product& product() { return *product_; }
  const at::Tensor& bias() const { return bias_.tensor(); }  ///< undefined: there is none

  double flops() const;  ///< of the forward pass of one row, without terms

  /// Whoever computes x W^T by itself adds these, in order. None while they are left out.
  const std::vector<std::shared_ptr<LinearTerm>>& terms() const;
  const std::vector<std::shared_ptr<LinearTerm>>& all_terms() const { return terms_; }
  void set_training(bool training);
  void add_term(std::shared_ptr<LinearTerm> term) { terms_.push_back(std::move(term)); }
  /// Whether forward passes compute the layer without its terms. Between two passes only.
  void leave_out_terms(bool leave_out) { leaves_out_ = leave_out; }

 private:
  std::unique_ptr<Product> product_;
  Weight bias_;
  std::vector<std::shared_ptr<LinearTerm>> terms_;
  bool leaves_out_ = false;
};

/// A linear layer of a block.
struct NamedLinear {
  std::string name;                 ///< `h.0.attn_qkv`: its weight is NAME.weight
  Linear* linear = nullptr;         ///< which may be given terms
  std::vector<std::int64_t> parts;  ///< outputs of the layers that are joined in it, such as q, k and v; one: it is one
};

}  // namespace components::part
