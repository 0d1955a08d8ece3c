#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "components/block/block.h"
#include "components/part/product.h"
#include "components/tensor/tensors.h"

namespace components::block {

using Blocks = std::vector<std::unique_ptr<Block>>;

/// The weights that are kept in fewer than 16 bits, and are no parameters, in order.
std::vector<part::NamedProduct> quantized_products(const Blocks& blocks);
/// The same as tensors on the meta device: shapes alone.
NamedTensors quantized_weights(const Blocks& blocks);
/// What they take in memory.
std::int64_t quantized_bytes(const Blocks& blocks);
/// How many numbers they have.
std::int64_t quantized_count(Block& block);

}  // namespace components::block
