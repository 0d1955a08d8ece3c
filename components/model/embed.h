#pragma once

#include <optional>
#include <string>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/stack.h"
#include "components/ops/dropout.h"
#include "components/part/embedding.h"

namespace components::model {

/// ids -> token vectors, plus those of the positions when they are learned.
class Embed final : public block::BasicBlock {
 public:
  /// `positions`: those of the batch, where it has some.
  Embed(const TensorSpec& ids, const TensorSpec& stream, const StackOptions& options, const TensorSpec* positions,
        part::WeightMaker& weights);

  void forward(TensorMap& activations) const override;
  bool decodes() const override { return true; }
  void decode(TensorMap& activations, part::CachedPass& pass) const override;
  std::vector<std::string> lowered_weights() const override { return {"wte.weight"}; }

  const at::Tensor& token_weight() const { return wte_.weight(); }

 private:
  at::Tensor scaled(const at::Tensor& x) const;

  bool tied_;
  double dropout_, scale_;
  part::Embedding wte_;
  std::optional<part::Embedding> wpe_;
};

}  // namespace components::model
