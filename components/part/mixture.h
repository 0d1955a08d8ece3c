#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/part/activation.h"
#include "components/part/linear.h"
#include "components/part/mlp.h"
#include "components/part/quantized_product.h"
#include "components/part/weight.h"

// N: positions   C: features of the stream   E: experts   K: experts of a position   F: features inside an expert

namespace components::part {

struct MixtureOptions {
  std::int64_t width = 0, hidden = 0;    ///< C, and F of each expert
  std::int64_t experts = 0, chosen = 0;  ///< E and K
  bool normalized = true;                ///< the weights of a position's experts are divided by their sum
  Activation activation = Activation::kSilu;
  Init in, out;  ///< of the experts' two weights; the router begins like the first

  MlpOptions of_expert() const { return {width, hidden, activation, /*gated=*/true, /*bias=*/false, in, out}; }
};

/// Which experts the positions go to.
struct Routing {
  at::Tensor probabilities_NE;  ///< float32, of all experts
  at::Tensor weights_NK;        ///< float32, of those that are chosen, the most probable first
  at::Tensor experts_NK;        ///< int64
};

/// The positions of each expert, one expert behind the other. A position occurs K times.
struct ExpertRows {
  at::Tensor order_M;                ///< int64 [N K]: places in experts_NK, flattened
  std::vector<std::int64_t> counts;  ///< of each expert
};

/// The matrices of all experts, a parameter [E, O, I] or kept in fewer bits.
class ExpertStack {
 public:
  /// NAME.weight.
  ExpertStack(Declared& declared, const std::string& name, std::int64_t experts, std::int64_t out, std::int64_t in,
              const Init& init);
  ~ExpertStack();
  ExpertStack(ExpertStack&&) noexcept;
  ExpertStack& operator=(ExpertStack&&) noexcept;

  /// The matrices of a parameter one by one, for a forward pass: each expert's part of a stack would else have a
  /// gradient of the size of all. Empty where they are kept in fewer bits.
  std::vector<at::Tensor> each() const;
  /// Of expert e, by LibTorch's operations: x [N, I] to [N, O]. `each`: what each() gave.
  at::Tensor forward(const at::Tensor& x_NI, std::int64_t e, const std::vector<at::Tensor>& each) const;
  /// For generation on the CPU: the matrix [O, I] of expert e in the type of products, a view or a copy.
  at::Tensor matrix(std::int64_t e, bool bf16) const;
  /// Null where it is a parameter.
  QuantizedProduct* quantized() const { return quantized_.get(); }
  std::vector<std::int64_t> shape() const { return {experts_, out_, in_}; }

 private:
  std::int64_t experts_, out_, in_;
  Weight weight_;  ///< undefined: in fewer bits
  std::unique_ptr<QuantizedProduct> quantized_;
};

/// A mixture of gated MLPs without biases: a router chooses K of E experts for each position, and what these compute is
/// summed by its weights. `NAME_router.weight` [E, C], `NAME_experts_fc.weight` [E, 2 F, C], whose first halves are the
/// gates, and `NAME_experts_proj.weight` [E, C, F]. An expert without a position gets a gradient of zeros.
///
/// Source  Jiang et al. 2024, Mixtral of Experts; Transformers' MixtralSparseMoeBlock and Qwen3MoeSparseMoeBlock
class Mixture {
 public:
  Mixture(Declared& declared, const std::string& name, const MixtureOptions& options);

  Routing routing(const at::Tensor& x_NC) const { return routed(router_.forward(x_NC)); }
  Routing routed(const at::Tensor& logits_NE) const;  ///< of what the router gives
  /// By LibTorch's operations: one product for each expert over its positions. Waits for the device.
  at::Tensor forward(const at::Tensor& x_NC, const Routing& routing) const;

  /// On the meta device the experts have as many positions each.
  ExpertRows rows_of(const Routing& routing) const;
  /// The weighted sums [N, C] of what the experts give for their rows, [N K, C] in the order of ExpertRows. A position
  /// depends on no other one, and the sum always has the same order.
  at::Tensor summed(const at::Tensor& given_MC, const ExpertRows& rows, const Routing& routing) const;

  const MixtureOptions& options() const { return options_; }
  const Linear& router() const { return router_; }
  Linear& router() { return router_; }
  const ExpertStack& experts_fc() const { return fc_; }
  const ExpertStack& experts_proj() const { return proj_; }

 private:
  MixtureOptions options_;
  Linear router_;
  ExpertStack fc_, proj_;
};

/// What Routing adds to a balance of experts, float32 [2, E]: how many positions chose each expert, and the sums of
/// their probabilities. real_N: true where a position counts; undefined: all do.
at::Tensor balance_sums(const Routing& routing, const at::Tensor& real_N);

/// Grows with the imbalance of experts, K when they are chosen alike: E times the sum over experts of the fraction of
/// positions that chose one and its mean probability. Differentiable by the probabilities alone.
///
/// sums_2E  those of all layers, added
/// chosen   K
/// Source   Fedus et al. 2021, Switch Transformer, (4) to (6); Transformers' load_balancing_loss_func
at::Tensor balance_loss(const at::Tensor& sums_2E, std::int64_t chosen);

}  // namespace components::part
