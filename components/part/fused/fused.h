#pragma once

#include <cstdint>
#include <optional>

#include "components/ops/dropout.h"
#include "components/part/attention.h"
#include "components/part/mlp.h"
#include "components/part/norm.h"
#include "components/part/texts.h"
#include "runner/core/tensor_fwd.h"

// A transformer block as three nodes of the autograd graph, for float32 streams on the CPU: norms, biases, activations,
// rotation and residual sums go over memory once each (components/kernels), the products are LibTorch's or our own, in
// bfloat16 under autocast. The norms stand before the branches (GPT-2) or behind the sums (BERT). What they compute is
// what the parts' plain operations compute, rounded elsewhere. A backward pass runs once; gradients of gradients:
// RUNNER_ASSERT.

namespace components::part {

/// Whether the three cover this input under the present autocast: a float32 stream [B, T, C] and weights on the CPU, of
/// which frozen ones, and all under products in bfloat16, may be bfloat16, products in float32 or bfloat16, an
/// activation of the kernels, and attention as attend_heads_covers() says. `drops`: whether it drops weights. `texts`:
/// of a stream [1, N, C] without padding; null: all rows are as long.
bool fused_block_fits(const at::Tensor& x_BTC, const SelfAttention& attention, const Mlp& mlp, bool drops,
                      const Texts* texts);

struct NormedLinear {
  at::Tensor out;     ///< [B * T, O] in the type of the products, without the linear layer's bias
  at::Tensor stream;  ///< x itself; what uses this one adds its gradient inside the norm's
};

/// The linear layer of the norm of x_BTC, or of x_BTC itself where `norm` is null.
NormedLinear fused_norm_linear(const at::Tensor& x_BTC, const Norm* norm, const Linear& linear);

/// Attention over a joint projection, whose bias it adds.
///
/// qkv      [B * T, (H + 2 K) D], as fused_norm_linear() gives it;  bias of one such row, or undefined
/// Returns  [B * T, H D] in the type of qkv
at::Tensor fused_attention(const at::Tensor& qkv, const at::Tensor& bias, const Rotation* rotation,
                           std::int64_t positions, const AttentionOptions& options, const kernels::DropMask& drop);
/// The same for texts of unlike length, [N, (H + 2 K) D] to [N, H D]; rotation goes by the place in a text.
at::Tensor fused_attention(const at::Tensor& qkv, const at::Tensor& bias, const Rotation* rotation, const Texts& texts,
                           const AttentionOptions& options, const kernels::DropMask& drop);

/// What dropout takes from both branches; masks that leave nothing out where there is none.
struct BranchDrops {
  kernels::DropMask attention, mlp;
  at::Tensor rows;  ///< that the masks' own `rows` lie in; undefined: they have none
};

/// `y = x + drop(proj(mixed))`, and `y + drop(mlp(norm(y)))`; where the norms stand behind the sums
/// `y = norm(x + drop(proj(mixed)))`, and `last(y + drop(mlp(y)))`.
///
/// x_BTC    the stream;  mixed [B * T, H D]
/// last     null: the norms stand before the branches
/// Returns  [B, T, C] float32
at::Tensor fused_output_mlp(const at::Tensor& x_BTC, const at::Tensor& mixed, const Linear& proj, const Norm& norm,
                            const Mlp& mlp, const Norm* last, const BranchDrops& drops);

}  // namespace components::part
