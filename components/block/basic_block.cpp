#include "components/block/basic_block.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceType.h>

#include <cmath>
#include <utility>

#include "components/tensor/tensors.h"

namespace components::block {
namespace {

at::Tensor uninitialised(std::span<const std::int64_t> shape, bool meta) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(meta ? at::kMeta : at::kCPU);
  return at::empty(at::IntArrayRef(shape.data(), shape.size()), options);
}

}  // namespace

std::vector<NamedTensor> Block::constants() const { return {}; }

BasicBlock::BasicBlock(std::string name, TensorSpec input, TensorSpec output)
    : name_(std::move(name)), inputs_{std::move(input)}, outputs_{std::move(output)} {}

BasicBlock::~BasicBlock() = default;

std::vector<NamedTensor> BasicBlock::parameters() const { return parameters_; }

std::vector<NamedTensor> BasicBlock::buffers() const { return buffers_; }

std::size_t BasicBlock::add_parameter(std::string full_name, const at::Tensor& tensor) {
  parameters_.push_back({std::move(full_name), tensor});
  return parameters_.size() - 1;
}

const at::Tensor& BasicBlock::parameter(std::size_t position) const { return parameters_[position].tensor; }

std::size_t BasicBlock::add_buffer(std::string full_name, const at::Tensor& tensor) {
  buffers_.push_back({std::move(full_name), tensor});
  return buffers_.size() - 1;
}

const at::Tensor& BasicBlock::buffer(std::size_t position) const { return buffers_[position].tensor; }

const at::Tensor& BasicBlock::read(const TensorMap& activations) const { return activations.at(input().name); }

void BasicBlock::write(TensorMap& activations, at::Tensor tensor) const {
  activations.set(output().name, std::move(tensor));
}

at::Tensor uniform_parameter(std::span<const std::int64_t> shape, double bound, bool meta) {
  at::Tensor tensor = uninitialised(shape, meta);
  if (!meta) tensor.uniform_(-bound, bound);
  return tensor.set_requires_grad(true);
}

at::Tensor normal_parameter(std::span<const std::int64_t> shape, double deviation, bool meta) {
  at::Tensor tensor = uninitialised(shape, meta);
  if (!meta) tensor.normal_(0.0, deviation);
  return tensor.set_requires_grad(true);
}

at::Tensor constant_parameter(std::span<const std::int64_t> shape, double value, bool meta) {
  return constant_buffer(shape, value, meta).set_requires_grad(true);
}

at::Tensor constant_buffer(std::span<const std::int64_t> shape, double value, bool meta) {
  at::Tensor tensor = uninitialised(shape, meta);
  if (!meta) tensor.fill_(value);
  return tensor;
}

at::Tensor kaiming_uniform_weight(std::span<const std::int64_t> shape, std::int64_t fan_in, bool meta) {
  // kaiming_uniform_(a=sqrt(5)), step by step as torch.nn.init does it: the last bit of the bound matters.
  const double slope = std::sqrt(5.0);
  const double gain = std::sqrt(2.0 / (1.0 + slope * slope));
  const double deviation = gain / std::sqrt(static_cast<double>(fan_in));
  return uniform_parameter(shape, std::sqrt(3.0) * deviation, meta);
}

at::Tensor linear_weight(std::int64_t in_features, std::int64_t out_features, bool meta) {
  const std::int64_t shape[] = {out_features, in_features};
  return kaiming_uniform_weight(shape, in_features, meta);
}

at::Tensor linear_bias(std::int64_t in_features, std::int64_t out_features, bool meta) {
  const std::int64_t shape[] = {out_features};
  return uniform_parameter(shape, 1.0 / std::sqrt(static_cast<double>(in_features)), meta);
}

}  // namespace components::block
