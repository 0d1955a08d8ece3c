#include "components/block/basic_block.h"

#include <utility>

#include "components/part/linear.h"
#include "components/part/product.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::block {

std::vector<NamedTensor> Block::constants() const { return {}; }

std::vector<part::NamedLinear> Block::linears() { return {}; }

std::vector<part::NamedExperts> Block::experts() const { return {}; }

std::vector<part::NamedProduct> Block::quantized() {
  std::vector<part::NamedProduct> found;
  for (const part::NamedLinear& named : linears()) {
    part::Product& product = named.linear->product();
    if (product.is_quantized()) found.push_back({named.name + ".weight", &product, {product.out(), product.in()}});
  }
  return found;
}

void Block::decode(TensorMap&, part::CachedPass&) const { RUNNER_ASSERT(false, "asked of blocks that decode"); }

BasicBlock::BasicBlock(std::string name, TensorSpec input, TensorSpec output)
    : name_(std::move(name)), inputs_{std::move(input)}, outputs_{std::move(output)} {}

BasicBlock::BasicBlock(std::string name, TensorSpec input, TensorSpec output, part::WeightMaker& maker)
    : name_(std::move(name)), inputs_{std::move(input)}, outputs_{std::move(output)}, declared_(maker) {}

BasicBlock::~BasicBlock() = default;

std::vector<NamedTensor> BasicBlock::parameters() const { return declared_.parameters(); }

std::vector<NamedTensor> BasicBlock::buffers() const { return declared_.buffers(); }

std::size_t BasicBlock::add_parameter(std::string full_name, std::span<const std::int64_t> shape,
                                      const part::Init& init) {
  declared_.parameter(std::move(full_name), shape, init);
  return parameter_count() - 1;
}

std::size_t BasicBlock::add_parameter(std::string full_name, std::initializer_list<std::int64_t> shape,
                                      const part::Init& init) {
  return add_parameter(std::move(full_name), std::span(shape.begin(), shape.size()), init);
}

std::size_t BasicBlock::parameter_count() const { return declared_.parameters().size(); }

std::size_t BasicBlock::buffer_count() const { return declared_.buffers().size(); }

const at::Tensor& BasicBlock::parameter(std::size_t position) const { return declared_.parameters()[position].tensor; }

std::size_t BasicBlock::add_buffer(std::string full_name, std::initializer_list<std::int64_t> shape, double value) {
  declared_.buffer(std::move(full_name), std::span(shape.begin(), shape.size()), value);
  return buffer_count() - 1;
}

const at::Tensor& BasicBlock::buffer(std::size_t position) const { return declared_.buffers()[position].tensor; }

const at::Tensor& BasicBlock::read(const TensorMap& activations) const { return activations.at(input().name); }

void BasicBlock::write(TensorMap& activations, at::Tensor tensor) const {
  activations.set(output().name, std::move(tensor));
}

}  // namespace components::block
