#pragma once

#include <cstdint>
#include <optional>

#include "components/ops/dropout.h"
#include "runner/core/tensor_fwd.h"

namespace components {
class Bf16WeightCache;
}

namespace components::model {

/// Weights of one pre-norm transformer block, float32; a bias is an undefined tensor where the block has none.
struct TransformerWeights {
  const at::Tensor &ln_1_weight, &ln_1_bias;
  const at::Tensor &qkv_weight, &qkv_bias;    ///< [3C, C], [3C]: query, key, value, each cut into heads
  const at::Tensor &proj_weight, &proj_bias;  ///< [C, C], [C]
  const at::Tensor &ln_2_weight, &ln_2_bias;
  const at::Tensor &fc_weight, &fc_bias;    ///< [4C, C], [4C]
  const at::Tensor &out_weight, &out_bias;  ///< [C, 4C], [C]
  Bf16WeightCache &qkv_low, &proj_low, &fc_low, &out_low;
};

struct TransformerShape {
  std::int64_t heads;
  double eps;  ///< of the norms
};

/// Whether fused_transformer() covers this input under the present autocast: float32 [B, T, C] and weights on the CPU,
/// products in float32 or bfloat16, sequences whose attention weights may be kept.
bool fused_transformer_fits(const at::Tensor& x_BTC, const at::Tensor& weight, std::int64_t heads);

/// The positions up to which it does: beyond, attention weights would take more memory than all else.
inline constexpr std::int64_t kFusedPositionsMax = 1024;

/// Which mask of a block's dropout is for what: attention's weights, and what both branches add to the stream.
enum BlockMask : std::uint32_t { kOfAttention, kOfProjection, kOfMlp };

/// One block as a single node of the autograd graph: norms, biases, GELU, rotation and residual sums go
/// over memory once each (components/kernels), the products are LibTorch's, in bfloat16 under autocast. What it
/// computes is what the block's plain operations compute, rounded elsewhere.
///
/// x_BTC    [B, T, C] float32
/// cos, sin [T', D / 2] float32 with T' >= T, or undefined tensors without rotary positions
/// dropout  nothing where nothing is left out
/// Returns  [B, T, C] float32
at::Tensor fused_transformer(const at::Tensor& x_BTC, const TransformerWeights& weights, const TransformerShape& shape,
                             const at::Tensor& cos, const at::Tensor& sin, const std::optional<Dropout>& dropout);

}  // namespace components::model
