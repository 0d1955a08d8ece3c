#pragma once

#include <cstddef>
#include <cstdint>

#include "components/part/attention.h"
#include "components/part/branch_norms.h"
#include "components/part/cached/kv_cache.h"
#include "components/part/mixture.h"
#include "components/part/mlp.h"
#include "components/part/norm.h"
#include "runner/core/tensor_fwd.h"

// What a decoder's blocks compute in a CachedPass. N: rows of the pass   C: features of the stream
// On the CPU the stream is float32 and the products are kernels::Dots, of float32 or bfloat16; elsewhere, and for what
// the kernels do not have, the parts' plain operations. No gradients.

namespace components::part {

/// The parts of a block, and the number of its attention in the cache.
struct CachedBlock {
  BranchNorms norms;
  const SelfAttention& attention;
  const Rotation* rotation;  ///< null: without
  const Mlp* mlp;            ///< null: with a mixture
  const Mixture* mixture;    ///< null: with an MLP
  double residual_scale;     ///< of what a branch adds
  std::size_t number;
};

/// x [N, C] to [N, C].
at::Tensor cached_block(const at::Tensor& x_NC, const CachedBlock& block, CachedPass& pass);

/// `x W^T + b` with the layer's terms. On the CPU in float32, or with products in bfloat16 where the pass has them;
/// there a row's result does not depend on the other rows.
at::Tensor cached_linear(const at::Tensor& x_NI, const Linear& linear, const CachedPass& pass);

/// Logits [segments, V], float32, of the last position of each segment, before what a model does with them.
at::Tensor cached_head(const at::Tensor& x_NC, const Norm& norm, const Weight& projection, const CachedPass& pass);

}  // namespace components::part
