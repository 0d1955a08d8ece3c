// B: samples   T: positions   C: features of the stream   N: new positions of all sequences

#include "components/model/embed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <utility>

#include "components/model/stack_pass.h"
#include "components/ops/kernel_policy.h"
#include "components/part/cached/cached.h"
#include "components/tensor/device.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::model {

Embed::Embed(const TensorSpec& ids, const TensorSpec& stream, const StackOptions& options, const BatchSpec& data,
             const TensorSpec* mask, part::WeightMaker& weights)
    : BasicBlock("embed", ids, stream, weights),
      tied_(options.tied && options.head.of == HeadOptions::Of::kVocabulary),
      decodes_(options.attention.causal),
      leaves_out_padding_(mask != nullptr),
      dropout_(options.dropout.embedding),
      scale_(options.embedding_scale),
      wte_(declared(), "wte", options.vocab_size, options.width, part::normal(options.deviation), options.padding_id) {
  if (options.learned_positions) {
    if (options.after_padding) counted_after_ = options.padding_id;
    wpe_.emplace(declared(), "wpe", options.positions, options.width, part::normal(options.deviation),
                 counted_after_.value_or(-1));
    const TensorSpec* positions = data.find(kPositions);
    reads_positions_ = positions != nullptr;
    if (reads_positions_) add_input(*positions);
  }
  if (options.token_types > 0) {
    wtt_.emplace(declared(), "wtt", options.token_types, options.width, part::normal(options.deviation));
    const TensorSpec* types = data.find(kTokenTypes);
    reads_types_ = types != nullptr;
    if (reads_types_) add_input(*types);
  }
  if (options.embedding_norm) ln_e_.emplace(declared(), "ln_e", norm_of(options));
  if (mask != nullptr) add_input(*mask);
}

void Embed::forward(TensorMap& activations) const {
  const at::Tensor& ids_BT = read(activations);
  const std::optional<part::Texts> gathered = texts(activations);
  const auto real = [&](const at::Tensor& x_BT) { return gathered ? gathered->gathered(x_BT) : x_BT; };
  // Where the head has the same weight, a sparse gradient is added to its dense one without filling a second one.
  // Only the CPU does that in a fixed order.
  at::Tensor x_BTC = scaled(wte_.forward(real(ids_BT), tied_ && training() && supports_own_kernels(wte_.weight())));
  if (wpe_) x_BTC = x_BTC + of_positions(ids_BT, activations, gathered ? &*gathered : nullptr);
  // Without types each token is of the first.
  if (wtt_) x_BTC = x_BTC + (reads_types_ ? wtt_->forward(real(activations.at(kTokenTypes))) : wtt_->first(1));
  if (ln_e_) x_BTC = ln_e_->forward(x_BTC);
  std::optional<Dropout> dropout;
  if (training() && dropout_ > 0) dropout.emplace(dropout_, x_BTC);
  if (dropout && gathered) dropout = gathered->of_places(*dropout);
  if (gathered) part::note_texts(activations, *gathered);
  write(activations, drop(std::move(x_BTC), dropout, dropout_, 0));
}

/// Nothing where this batch keeps its padding: on another device, under plain operations, or where it has none.
std::optional<part::Texts> Embed::texts(const TensorMap& activations) const {
  if (!leaves_out_padding_ || !fused_kernels() || !read(activations).is_cpu()) return std::nullopt;
  return part::texts_of(activations.at(kAttentionMask));
}

/// As the stream, or [T, C] for all rows.
at::Tensor Embed::of_positions(const at::Tensor& ids_BT, const TensorMap& activations, const part::Texts* texts) const {
  if (counted_after_) {
    const at::Tensor real_BT = ids_BT.ne(*counted_after_).to(at::kLong);
    at::Tensor counted_BT = real_BT.cumsum(1);
    if (reads_positions_) {  // each document counts from its own beginning
      const at::Tensor& position_BT = activations.at(kPositions);
      const at::Tensor begin_BT = at::arange(ids_BT.size(1), position_BT.options()).sub(position_BT).clamp_min(0);
      counted_BT = counted_BT - (counted_BT - real_BT).gather(1, begin_BT);
    }
    counted_BT = counted_BT * real_BT + *counted_after_;
    return wpe_->forward(texts != nullptr ? texts->gathered(counted_BT) : counted_BT);
  }
  if (texts != nullptr) {
    RUNNER_ASSERT(texts->longest <= wpe_->weight().size(0), "sequences are cut to max_seq_len, which was compared");
    return wpe_->forward(texts->places.remainder(texts->padded).unsqueeze(0));
  }
  at::Tensor packed_BT = reads_positions_ ? packed_positions(activations.at(kPositions)) : at::Tensor();
  // Without values nothing says whether a row is packed.
  if (reads_positions_ && ids_BT.is_meta()) packed_BT = activations.at(kPositions);
  // A row of several documents may be longer than any of them.
  RUNNER_ASSERT(packed_BT.defined() || ids_BT.size(1) <= wpe_->weight().size(0),
                "sequences are cut to max_seq_len, which was compared");
  return packed_BT.defined() ? wpe_->forward(packed_BT) : wpe_->first(ids_BT.size(1));
}

void Embed::decode(TensorMap& activations, part::CachedPass& pass) const {
  at::Tensor x_NC = scaled(wte_.forward(read(activations))).to(at::kFloat);
  if (wpe_) {
    std::vector<std::int64_t> positions;
    for (const part::Segment& segment : pass.segments) {
      for (std::int64_t p = segment.first; p < segment.end(); ++p) positions.push_back(p);
    }
    const at::Tensor& table = wpe_->weight();
    x_NC = x_NC + table.index_select(0, at::tensor(positions, at::kLong).to(table.device())).to(at::kFloat);
  }
  write(activations, x_NC);
}

at::Tensor Embed::scaled(const at::Tensor& x) const { return scale_ == 1.0 ? x : x * scale_; }

}  // namespace components::model
