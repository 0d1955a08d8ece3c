#include "components/block/quantized.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace components::block {

std::vector<part::NamedLinear> quantized_linears(Block& block) {
  std::vector<part::NamedLinear> found;
  for (part::NamedLinear& named : block.linears()) {
    if (named.linear->product().is_quantized()) found.push_back(std::move(named));
  }
  return found;
}

std::vector<part::NamedLinear> quantized_linears(const Blocks& blocks) {
  std::vector<part::NamedLinear> found;
  for (const auto& block : blocks) {
    for (part::NamedLinear& named : quantized_linears(*block)) found.push_back(std::move(named));
  }
  return found;
}

NamedTensors quantized_weights(const Blocks& blocks) {
  NamedTensors weights;
  for (const part::NamedLinear& named : quantized_linears(blocks)) {
    const part::Product& product = named.linear->product();
    weights.push_back(
        {named.name + ".weight", at::empty({product.out(), product.in()}, at::TensorOptions().device(at::kMeta))});
  }
  return weights;
}

std::int64_t quantized_bytes(const Blocks& blocks) {
  std::int64_t bytes = 0;
  for (const part::NamedLinear& named : quantized_linears(blocks)) bytes += named.linear->product().bytes();
  return bytes;
}

std::int64_t quantized_count(Block& block) {
  std::int64_t count = 0;
  for (const part::NamedLinear& named : quantized_linears(block)) {
    count += named.linear->product().in() * named.linear->product().out();
  }
  return count;
}

}  // namespace components::block
