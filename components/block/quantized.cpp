#include "components/block/quantized.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace components::block {

std::vector<part::NamedProduct> quantized_products(const Blocks& blocks) {
  std::vector<part::NamedProduct> found;
  for (const auto& block : blocks) {
    for (part::NamedProduct& named : block->quantized()) found.push_back(std::move(named));
  }
  return found;
}

NamedTensors quantized_weights(const Blocks& blocks) {
  NamedTensors weights;
  for (const part::NamedProduct& named : quantized_products(blocks)) {
    weights.push_back({named.name, at::empty(named.shape, at::TensorOptions().device(at::kMeta))});
  }
  return weights;
}

std::int64_t quantized_bytes(const Blocks& blocks) {
  std::int64_t bytes = 0;
  for (const part::NamedProduct& named : quantized_products(blocks)) bytes += named.product->bytes();
  return bytes;
}

std::int64_t quantized_count(Block& block) {
  std::int64_t count = 0;
  for (const part::NamedProduct& named : block.quantized()) count += named.product->in() * named.product->out();
  return count;
}

}  // namespace components::block
