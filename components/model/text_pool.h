#pragma once

#include <vector>

#include "components/model/stack.h"
#include "runner/core/tensor_fwd.h"

namespace components::model {

/// Takes of each text of a row what speaks for it: its first position, its last one, or the mean of all.
class TextPool {
 public:
  /// `data`: what says where the padding is, and where each of several texts begins.
  TextPool(HeadOptions::Pool pool, const BatchSpec& data);

  /// What it reads beside the stream.
  const std::vector<TensorSpec>& reads() const { return reads_; }
  /// Whether rows hold several texts.
  bool has_several() const { return has_several_; }
  /// Of a stream x_BTC [B, T, C], with its padding: [B, C], or of several texts [B, K, C]. Float32 where it is a mean.
  at::Tensor pooled(const at::Tensor& x_BTC, const TensorMap& activations) const;

 private:
  at::Tensor own_positions(const at::Tensor& x_BTC, const at::Tensor& begins_BK, const TensorMap& activations) const;

  HeadOptions::Pool pool_;
  std::vector<TensorSpec> reads_;
  bool has_several_, has_mask_;
};

}  // namespace components::model
