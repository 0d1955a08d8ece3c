#pragma once

#include <cstdint>

#include "components/kernels/transformer.h"
#include "runner/core/tensor_fwd.h"

namespace components::model {

struct AttentionShape {
  std::int64_t batch, positions, heads, head;  ///< head: features of one
  std::int64_t samples() const { return batch * heads; }
  std::int64_t features() const { return heads * head; }
  std::int64_t rows() const { return batch * positions; }
};

/// `(drop * softmax(q k^T / sqrt(D))) v` where each position looks at itself and those before it. T is float or
/// kernels::Bf16, of all tensors; nothing is recorded for autograd.
///
/// q, k, v  [B * H, T, D]
/// probs    becomes [B * H, T, T], for the backward pass, which alone knows what it holds beyond the diagonal
/// drop     its rows are those of probs, [B * H * T]
/// Returns  [B * T, H * D], the heads side by side
template <typename T>
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape,
                            const kernels::DropMask& drop, at::Tensor& probs);

/// Its backward pass. dmixed [B * T, H * D]; dq, dk and dv become [B * H, T, D].
template <typename T>
void causal_attention_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& probs,
                               const at::Tensor& dmixed, const AttentionShape& shape, const kernels::DropMask& drop,
                               at::Tensor& dq, at::Tensor& dk, at::Tensor& dv);

}  // namespace components::model
