#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "components/block/block.h"
#include "components/model/stack.h"
#include "components/part/rotation.h"

namespace components::model {

/// Optional tensors of a batch that blocks read, where they change something; null: not read.
struct LayerReads {
  const TensorSpec *mask, *positions;
  const TensorSpec* padding = nullptr;  ///< the mask, for the balance of a mixture's experts
};

/// Whether a stack on the CPU computes padded rows without their padding: it looks both ways, and the fused nodes have
/// what its blocks do. Where a row has its padding at the end, `embed` gathers the real positions, and the head takes
/// what it reads.
bool leaves_out_padding(const StackOptions& options, const LayerReads& reads);

/// Block `layer` of the stack. `rotation`: null where it does not turn queries and keys.
std::unique_ptr<block::Block> make_layer(const std::string& name, std::int64_t layer, const TensorSpec& stream,
                                         const StackOptions& options, std::shared_ptr<const part::Rotation> rotation,
                                         const LayerReads& reads, part::WeightMaker& weights);

}  // namespace components::model
