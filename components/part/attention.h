#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "components/ops/dropout.h"
#include "components/part/linear.h"
#include "components/part/norm.h"
#include "components/part/rotation.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

struct Heads;
struct RaggedRows;

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  ///< each serves heads / kv_heads neighbours: fewer are grouped, one is multi-query
  std::int64_t head = 0;      ///< features of one
  double scale = 1.0;         ///< of the scores, usually 1 / sqrt(head)
  bool causal = true;         ///< a position looks at itself and those before it
  /// > 0: of those, at the last `window`, itself among them; where it is not causal, at `window` on either side of
  /// itself.
  std::int64_t window = 0;
  bool alibi = false;  ///< scores fall with distance (Press et al. 2021)
  double cap = 0;      ///< > 0: scores are `cap tanh(score / cap)` before the mask
};

/// What one pass adds to it.
struct AttentionPass {
  /// [B, S] bool, false at padding, which is not looked at; undefined: nothing is padded. A position that would see
  /// nothing looks at itself.
  const at::Tensor& mask;
  const std::optional<Dropout>& dropout;  ///< of the weights; nothing: none
  double rate = 0.0;                      ///< that dropout's
  std::uint32_t number = 0;               ///< its mask
  /// [B, T] int64, kPositions of rows of several documents, which do not look at each other (T = S); null: a row is
  /// one document.
  const at::Tensor* positions = nullptr;
  /// The same, and what the mask leaves, for the kernels of a GPU; null: each row is one document.
  const RaggedRows* rows = nullptr;
  /// [1, H, T, S], added to the scores; a gradient passes through it. Null: none.
  const at::Tensor* bias = nullptr;
};

/// `softmax(scale q k^T + mask) v` by LibTorch's operations.
///
/// q     [B, T, H, D];  k, v  [B, S, K, D], where S may differ from T: cross attention
/// Returns [B, T, H * D]
at::Tensor attend(const at::Tensor& q_BTHD, const at::Tensor& k_BSKD, const at::Tensor& v_BSKD,
                  const AttentionOptions& options, const AttentionPass& pass);

/// Whether queries and keys are normed before they are turned: each head by itself, or all features of a position.
enum class QueryNorm { kNone, kHead, kAll };

struct SelfAttentionOptions {
  AttentionOptions of;
  std::int64_t width = 0;  ///< of the stream
  bool qkv_bias = true, out_bias = true;
  Init in, out;  ///< of the two weights; biases begin with 0
  QueryNorm query_norm = QueryNorm::kNone;
  NormOptions norm = {};  ///< of queries and keys; `width` is filled in
};

/// `NAME_qkv` [(H + 2 K) D, C], all of q, then k, then v, and `NAME_proj` [C, H D]; where queries are normed
/// `NAME_q_norm` and `NAME_k_norm`.
class SelfAttention {
 public:
  SelfAttention(Declared& declared, const std::string& name, const SelfAttentionOptions& options);

  /// [B, T, C] to [B, T, C], before whatever follows the projection.
  at::Tensor forward(const at::Tensor& x_BTC, const Rotation* rotation, const AttentionPass& pass) const;
  /// The same of the joint projection [B, T, (H + 2 K) D], which the bias is in, to [B, T, H D], before NAME_proj.
  at::Tensor mix(const at::Tensor& qkv, const Rotation* rotation, const AttentionPass& pass) const;
  /// Of such a projection; normed, not turned.
  Heads heads(const at::Tensor& qkv) const;
  const Norm* q_norm() const { return q_norm_ ? &*q_norm_ : nullptr; }  ///< null: queries and keys are not normed
  const Norm* k_norm() const { return k_norm_ ? &*k_norm_ : nullptr; }
  const AttentionOptions& options() const { return options_; }
  const Linear& qkv() const { return qkv_; }
  const Linear& proj() const { return proj_; }
  Linear& qkv() { return qkv_; }
  Linear& proj() { return proj_; }

 private:
  AttentionOptions options_;
  Linear qkv_, proj_;
  QueryNorm query_norm_;
  std::optional<Norm> q_norm_, k_norm_;
};

}  // namespace components::part
