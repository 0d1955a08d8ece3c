#pragma once

#include "components/part/attention.h"
#include "components/part/cached/kv_cache.h"
#include "components/part/rotation.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

/// Attention of the rows of a pass to what their sequences have seen, which they are added to. By the kernels; T is
/// float or kernels::Bf16, the type of keys, values and products.
///
/// qkv      [N, (H + 2 K) D] float32, without `bias` of one such row, or undefined
/// Returns  [N, H D] float32
template <typename T>
at::Tensor attend_cached(const at::Tensor& qkv, const at::Tensor& bias, const Rotation* rotation,
                         const AttentionOptions& options, KvCache::Layer& layer, const CachedPass& pass);

/// The same by LibTorch's operations, sequence by sequence, in the type of qkv, to which the bias has been added.
/// `behind_HL`: what is added to scores, by how far what is looked at lies behind, for all positions of the pass; null:
/// nothing.
at::Tensor attend_cached_plainly(const at::Tensor& qkv, const Rotation* rotation, const SelfAttention& attention,
                                 KvCache::Layer& layer, const CachedPass& pass, const at::Tensor* behind_HL = nullptr);

/// Attention of the rows of a pass to the sources of their sequences, those of cross attention `number` in the cache.
///
/// q [N, H D] to [N, H D]
at::Tensor attend_sources(const at::Tensor& q, const AttentionOptions& options, std::size_t number,
                          const CachedPass& pass);

}  // namespace components::part
