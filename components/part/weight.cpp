#include "components/part/weight.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceType.h>

#include <cmath>
#include <utility>

#include "components/ops/bf16_weight_cache.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

at::Tensor uninitialised(std::span<const std::int64_t> shape, c10::DeviceType device) {
  return at::empty(at::IntArrayRef(shape.data(), shape.size()), at::TensorOptions().dtype(at::kFloat).device(device));
}

}  // namespace

Init kaiming_uniform(std::int64_t fan_in) {
  // kaiming_uniform_(a=sqrt(5)), step by step as torch.nn.init does it: the last bit of the bound matters.
  const double slope = std::sqrt(5.0);
  const double gain = std::sqrt(2.0 / (1.0 + slope * slope));
  const double deviation = gain / std::sqrt(static_cast<double>(fan_in));
  return uniform(std::sqrt(3.0) * deviation);
}

Init bias_uniform(std::int64_t fan_in) { return uniform(1.0 / std::sqrt(static_cast<double>(fan_in))); }

at::Tensor DrawnWeights::make(const std::string&, std::span<const std::int64_t> shape, const Init& init) {
  at::Tensor tensor = uninitialised(shape, at::kCPU);
  switch (init.kind) {
    case Init::Kind::kConstant: tensor.fill_(init.value); break;
    case Init::Kind::kUniform: tensor.uniform_(-init.value, init.value); break;
    case Init::Kind::kNormal: tensor.normal_(0.0, init.value); break;
  }
  if (init.zero_row >= 0) tensor.select(0, init.zero_row).zero_();
  return tensor;
}

at::Tensor MetaWeights::make(const std::string&, std::span<const std::int64_t> shape, const Init&) {
  return uninitialised(shape, at::kMeta);
}

Weight::Weight() : tensor_(std::make_unique<at::Tensor>()) {}
Weight::Weight(const at::Tensor& tensor)
    : tensor_(std::make_unique<at::Tensor>(tensor)), low_(std::make_unique<Bf16WeightCache>()) {}
Weight::~Weight() = default;
Weight::Weight(Weight&& other) noexcept = default;
Weight& Weight::operator=(Weight&& other) noexcept = default;

bool Weight::defined() const { return tensor_->defined(); }

Declared::Declared() = default;
Declared::Declared(WeightMaker& maker) : maker_(&maker) {}
Declared::~Declared() = default;

at::Tensor Declared::parameter(std::string full_name, std::span<const std::int64_t> shape, const Init& init) {
  RUNNER_ASSERT(maker_ != nullptr, "a block that declares parameters is given who makes them");
  at::Tensor tensor = maker_->make(full_name, shape, init).set_requires_grad(true);
  parameters_.push_back({std::move(full_name), std::move(tensor)});
  return parameters_.back().tensor;
}

at::Tensor Declared::buffer(std::string full_name, std::span<const std::int64_t> shape, double value) {
  RUNNER_ASSERT(maker_ != nullptr, "a block that declares buffers is given who makes them");
  at::Tensor tensor = maker_->make(full_name, shape, constant(value));
  buffers_.push_back({std::move(full_name), std::move(tensor)});
  return buffers_.back().tensor;
}

}  // namespace components::part
