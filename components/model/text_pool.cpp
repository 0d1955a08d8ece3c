// B: samples   T: positions   C: features of the stream   K: texts of a row

#include "components/model/text_pool.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cstdint>

#include "components/tensor/several_texts.h"
#include "components/tensor/tensors.h"

namespace components::model {
namespace {

constexpr double kLeast = 1e-9;  ///< that a mean is divided by, as in Sentence Transformers

/// [B, T, C] at [B, K]: [B, K, C].
at::Tensor taken(const at::Tensor& x_BTC, const at::Tensor& places_BK) {
  return x_BTC.gather(1, places_BK.unsqueeze(2).expand({-1, -1, x_BTC.size(2)}));
}

}  // namespace

TextPool::TextPool(HeadOptions::Pool pool, const BatchSpec& data) : pool_(pool) {
  const TensorSpec *several = data.find(kTextsAt), *mask = data.find(kAttentionMask);
  has_several_ = several != nullptr;
  has_mask_ = mask != nullptr && pool != HeadOptions::Pool::kFirst;
  if (has_several_) reads_.push_back(*several);
  if (has_mask_) reads_.push_back(*mask);
}

/// [B, K, T] bool: the positions of each text, without the padding.
at::Tensor TextPool::own_positions(const at::Tensor& x_BTC, const at::Tensor& begins_BK,
                                   const TensorMap& activations) const {
  const at::Tensor place_T = at::arange(x_BTC.size(1), begins_BK.options());
  const at::Tensor begun_BKT = place_T.ge(begins_BK.unsqueeze(2));
  const at::Tensor last_B1T = at::zeros_like(begun_BKT.narrow(1, 0, 1));
  const at::Tensor over_BKT = at::cat({begun_BKT.narrow(1, 1, begun_BKT.size(1) - 1), last_B1T}, 1);
  const at::Tensor own_BKT = begun_BKT.bitwise_and(over_BKT.logical_not());
  return has_mask_ ? own_BKT.bitwise_and(activations.at(kAttentionMask).to(at::kBool).unsqueeze(1)) : own_BKT;
}

at::Tensor TextPool::pooled(const at::Tensor& x_BTC, const TensorMap& activations) const {
  const at::Tensor begins_BK =
      has_several_ ? activations.at(kTextsAt) : at::zeros({x_BTC.size(0), 1}, x_BTC.options().dtype(at::kLong));
  at::Tensor texts_BKC;
  if (pool_ == HeadOptions::Pool::kFirst) {
    texts_BKC = taken(x_BTC, begins_BK);
  } else {
    const at::Tensor own_BKT = own_positions(x_BTC, begins_BK, activations);
    if (pool_ == HeadOptions::Pool::kLast) {
      const at::Tensor place_T = at::arange(x_BTC.size(1), begins_BK.options());
      texts_BKC = taken(x_BTC, (own_BKT.to(at::kLong) * place_T).amax(2));
    } else {
      // One text after the other: all at once would take K times the stream.
      const at::Tensor stream_BTC = x_BTC.to(at::kFloat), own = own_BKT.to(at::kFloat);
      std::vector<at::Tensor> sums;
      for (std::int64_t k = 0; k < own.size(1); ++k)
        sums.push_back((stream_BTC * own.select(1, k).unsqueeze(2)).sum(1));
      texts_BKC = at::stack(sums, 1) / own.sum(2).clamp_min(kLeast).unsqueeze(2);
    }
  }
  return has_several_ ? texts_BKC : texts_BKC.squeeze(1);
}

}  // namespace components::model
