#pragma once

#include <memory>

#include "components/block/block.h"
#include "components/model/stack.h"
#include "runner/core/tensor_fwd.h"

namespace components::model {

/// The last block, which reads the stream and gives kOutput. `token_weight`: the embedding's, for a head that shares
/// it.
std::unique_ptr<block::Block> make_head(const TensorSpec& stream, const BatchSpec& data, const StackOptions& options,
                                        const at::Tensor& token_weight, part::WeightMaker& weights);

}  // namespace components::model
