#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "components/kernels/transformer.h"
#include "components/part/attention.h"
#include "components/part/texts.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

struct AttentionShape {
  std::int64_t batch, positions, heads, kv_heads, head;  ///< head: features of one
  float scale;                                           ///< of the scores
  /// > 0: a position looks at the last `window` only; not causal, at `window` on either side of itself.
  std::int64_t window = 0;
  bool causal = true;
  /// [B + 1]: where texts of unlike length begin among the rows, `positions` being the longest; empty: all are as long.
  std::vector<std::int64_t> begins = {};
  /// Of padded rows without their padding their length, by which the rows of a dropout mask are counted; 0: positions.
  std::int64_t padded = 0;

  std::int64_t samples() const { return batch * heads; }
  std::int64_t kv_samples() const { return batch * kv_heads; }
  std::int64_t shared() const { return heads / kv_heads; }  ///< heads of queries that look at the same keys
  std::int64_t features() const { return heads * head; }
  std::int64_t rows() const { return begins.empty() ? batch * positions : begins.back(); }
  /// Before the text, and those of the text itself.
  std::int64_t rows_before(std::int64_t text) const {
    return begins.empty() ? text * positions : begins[static_cast<std::size_t>(text)];
  }
  std::int64_t rows_of(std::int64_t text) const { return rows_before(text + 1) - rows_before(text); }
  /// That text alone.
  AttentionShape of_text(std::int64_t text) const {
    return {1, rows_of(text), heads, kv_heads, head, scale, window, causal, {}, rows_of_mask()};
  }
  std::int64_t rows_of_mask() const { return padded > 0 ? padded : positions; }  ///< for each head of a text
  bool narrow() const { return window > 0 && window < positions; }
  /// Whether the weights are kept for the backward pass: those of a longer sequence would take more memory than all
  /// else, and are computed again.
  bool keeps_weights() const { return positions <= kKeptPositionsMax && !narrow(); }

  static constexpr std::int64_t kKeptPositionsMax = 1024;
};

/// Of rows of as many positions each, or of texts.
AttentionShape attention_shape(std::int64_t batch, std::int64_t positions, const AttentionOptions& options);
AttentionShape attention_shape(const Texts& texts, const AttentionOptions& options);

/// For the backward pass, which alone knows what it holds.
struct KeptAttention {
  at::Tensor weights;         ///< [B * H, T, T] where they are kept, of texts of unlike length one after the other
  at::Tensor out, logsumexp;  ///< of LibTorch's own kernel
  std::vector<KeptAttention> of_texts;
};

/// Whether it covers sequences of that shape: all where the processor has product kernels of our own but windows with
/// dropout, else those whose weights are kept, and longer ones without window and dropout.
bool attend_heads_covers(const AttentionShape& shape, bool bf16, bool drops);

/// `(drop * softmax(scale q k^T)) v` where each position looks at itself and those before it, or at all of its text. T
/// is float or kernels::Bf16, of all tensors; nothing is recorded for autograd.
///
/// q        [B * H, T, D];  k, v  [B * K, T, D], each for H / K neighbouring heads; of texts of unlike length
///          [H, length, D] text after text
/// drop     its rows are those of the weights, [B * H * T], counted in padded rows where those were padded
/// Returns  [B * T, H * D], the heads side by side
template <typename T>
at::Tensor attend_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape,
                        const kernels::DropMask& drop, KeptAttention& kept);

/// Its backward pass. dmixed [B * T, H * D]; dq, dk and dv become as q, k and v.
template <typename T>
void attend_heads_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const KeptAttention& kept,
                           const at::Tensor& dmixed, const AttentionShape& shape, const kernels::DropMask& drop,
                           at::Tensor& dq, at::Tensor& dk, at::Tensor& dv);

}  // namespace components::part
