#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "components/block/block.h"
#include "components/part/linear.h"
#include "components/tensor/tensors.h"

namespace components::block {

using Blocks = std::vector<std::unique_ptr<Block>>;

/// The linear layers whose weights are kept in fewer than 16 bits, and are no parameters, in order.
std::vector<part::NamedLinear> quantized_linears(Block& block);
std::vector<part::NamedLinear> quantized_linears(const Blocks& blocks);
/// Their weights by full names, as tensors on the meta device: shapes alone.
NamedTensors quantized_weights(const Blocks& blocks);
/// What they take in memory.
std::int64_t quantized_bytes(const Blocks& blocks);
/// How many numbers they have.
std::int64_t quantized_count(Block& block);

}  // namespace components::block
