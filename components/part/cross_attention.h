#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "components/part/attention.h"
#include "components/part/linear.h"

namespace components::part {

struct CrossAttentionOptions {
  AttentionOptions of;
  std::int64_t width = 0;  ///< of both streams
  bool bias = false;       ///< of all layers
  Init q, kv, out;         ///< of the weights; biases begin with 0
};

/// Keys and values of positions that are looked at, [B, S, K, D].
struct Keys {
  at::Tensor k, v;
};

/// Attention of a decoder's positions to those of an encoder: `NAME_q` [H D, C], `NAME_kv` [2 K D, C], all of k, then
/// v, and `NAME_proj` [C, H D].
class CrossAttention {
 public:
  CrossAttention(Declared& declared, const std::string& name, const CrossAttentionOptions& options);

  Keys keys(const at::Tensor& encoded_BSC) const;
  /// [B, T, C] to [B, T, C]; the mask of `pass` is [B, S].
  at::Tensor forward(const at::Tensor& x_BTC, const Keys& keys, const AttentionPass& pass) const;

  const AttentionOptions& options() const { return options_; }
  Linear& q() { return q_; }
  Linear& kv() { return kv_; }
  Linear& proj() { return proj_; }
  const Linear& q() const { return q_; }
  const Linear& kv() const { return kv_; }
  const Linear& proj() const { return proj_; }

 private:
  AttentionOptions options_;
  Linear q_, kv_, proj_;
};

}  // namespace components::part
