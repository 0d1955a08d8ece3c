#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/stack.h"
#include "components/ops/dropout.h"
#include "components/part/embedding.h"
#include "components/part/norm.h"
#include "components/part/texts.h"

namespace components::model {

/// ids -> token vectors, plus those of the positions when they are learned, and those of the token types. Where the
/// stack leaves padding out, the stream is [1, N, C] for a batch with padding, with what note_texts() tells of it.
class Embed final : public block::BasicBlock {
 public:
  /// `mask`: of a stack that leaves_out_padding(), which is left out here; null: of another one.
  Embed(const TensorSpec& ids, const TensorSpec& stream, const StackOptions& options, const BatchSpec& data,
        const TensorSpec* mask, part::WeightMaker& weights);

  void forward(TensorMap& activations) const override;
  bool decodes() const override { return decodes_; }
  void decode(TensorMap& activations, part::CachedPass& pass) const override;
  std::vector<std::string> lowered_weights() const override { return {"wte.weight"}; }

  const at::Tensor& token_weight() const { return wte_.weight(); }

 private:
  at::Tensor scaled(const at::Tensor& x) const;
  std::optional<part::Texts> texts(const TensorMap& activations) const;
  at::Tensor of_positions(const at::Tensor& ids_BT, const TensorMap& activations, const part::Texts* texts) const;

  bool tied_, decodes_, leaves_out_padding_, reads_positions_ = false, reads_types_ = false;
  double dropout_, scale_;
  std::optional<std::int64_t> counted_after_;  // the id of the padding, over which positions are not counted
  part::Embedding wte_;
  std::optional<part::Embedding> wpe_, wtt_;
  std::optional<part::Norm> ln_e_;
};

}  // namespace components::model
