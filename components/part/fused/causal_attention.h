#pragma once

#include <cstdint>

#include "components/kernels/transformer.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

struct AttentionShape {
  std::int64_t batch, positions, heads, kv_heads, head;  ///< head: features of one
  float scale;                                           ///< of the scores
  std::int64_t window = 0;                               ///< > 0: a position looks at the last `window` only
  std::int64_t samples() const { return batch * heads; }
  std::int64_t kv_samples() const { return batch * kv_heads; }
  std::int64_t shared() const { return heads / kv_heads; }  ///< heads of queries that look at the same keys
  std::int64_t features() const { return heads * head; }
  std::int64_t rows() const { return batch * positions; }
  bool narrow() const { return window > 0 && window < positions; }
  /// Whether the weights are kept for the backward pass: those of a longer sequence would take more memory than all
  /// else, and are computed again.
  bool keeps_weights() const { return positions <= kKeptPositionsMax && !narrow(); }

  static constexpr std::int64_t kKeptPositionsMax = 1024;
};

/// For the backward pass, which alone knows what it holds.
struct KeptAttention {
  at::Tensor weights;         ///< [B * H, T, T] where they are kept
  at::Tensor out, logsumexp;  ///< of LibTorch's own kernel
};

/// Whether it covers sequences of that shape: all where the processor has product kernels of our own but windows with
/// dropout, else those whose weights are kept, and longer ones without window and dropout.
bool causal_attention_covers(const AttentionShape& shape, bool bf16, bool drops);

/// `(drop * softmax(scale q k^T)) v` where each position looks at itself and those before it. T is float or
/// kernels::Bf16, of all tensors; nothing is recorded for autograd.
///
/// q        [B * H, T, D];  k, v  [B * K, T, D], each for H / K neighbouring heads
/// drop     its rows are those of the weights, [B * H * T]
/// Returns  [B * T, H * D], the heads side by side
template <typename T>
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape,
                            const kernels::DropMask& drop, KeptAttention& kept);

/// Its backward pass. dmixed [B * T, H * D]; dq, dk and dv become as q, k and v.
template <typename T>
void causal_attention_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const KeptAttention& kept,
                               const at::Tensor& dmixed, const AttentionShape& shape, const kernels::DropMask& drop,
                               at::Tensor& dq, at::Tensor& dk, at::Tensor& dv);

}  // namespace components::part
