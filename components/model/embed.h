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

namespace components::model {

/// ids -> token vectors, plus those of the positions when they are learned, and those of the token types.
class Embed final : public block::BasicBlock {
 public:
  Embed(const TensorSpec& ids, const TensorSpec& stream, const StackOptions& options, const BatchSpec& data,
        part::WeightMaker& weights);

  void forward(TensorMap& activations) const override;
  bool decodes() const override { return decodes_; }
  void decode(TensorMap& activations, part::CachedPass& pass) const override;
  std::vector<std::string> lowered_weights() const override { return {"wte.weight"}; }

  const at::Tensor& token_weight() const { return wte_.weight(); }

 private:
  at::Tensor scaled(const at::Tensor& x) const;
  at::Tensor of_positions(const at::Tensor& ids_BT, const TensorMap& activations) const;

  bool tied_, decodes_, reads_positions_ = false, reads_types_ = false;
  double dropout_, scale_;
  std::optional<std::int64_t> counted_after_;  // the id of the padding, over which positions are not counted
  part::Embedding wte_;
  std::optional<part::Embedding> wpe_, wtt_;
  std::optional<part::Norm> ln_e_;
};

}  // namespace components::model
