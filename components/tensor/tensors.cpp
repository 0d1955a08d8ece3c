#include "components/tensor/tensors.h"

#include <utility>

#include "runner/core/error.h"

namespace components {

const at::Tensor* TensorMap::find(std::string_view name) const {
  for (const NamedTensor& item : items_) {
    if (item.name == name) return &item.tensor;
  }
  return nullptr;
}

const at::Tensor& TensorMap::at(std::string_view name) const {
  const at::Tensor* tensor = find(name);
  RUNNER_ASSERT(tensor != nullptr, "a block reads only what its signature names, and those before it write that");
  return *tensor;
}

void TensorMap::set(std::string_view name, at::Tensor tensor) {
  for (NamedTensor& item : items_) {
    if (item.name == name) {
      item.tensor = std::move(tensor);
      return;
    }
  }
  items_.push_back({std::string(name), std::move(tensor)});
}

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32: return at::kFloat;
    case Dtype::kInt64: return at::kLong;
    case Dtype::kBool: return at::kBool;
    case Dtype::kInt32: return at::kInt;
    case Dtype::kUInt8: return at::kByte;
    case Dtype::kBFloat16: return at::kBFloat16;
    case Dtype::kFloat16: return at::kHalf;
  }
  return at::kFloat;
}

TensorMap on_cpu(const TensorMap& tensors, const std::vector<std::string>& names) {
  TensorMap copies;
  for (const std::string& name : names) {
    if (copies.find(name) == nullptr) copies.set(name, tensors.at(name).cpu());
  }
  return copies;
}

TensorMap sample_of(const TensorMap& batch, std::int64_t i) {
  TensorMap sample;
  for (const NamedTensor& item : batch.items()) sample.set(item.name, item.tensor.narrow(0, i, 1));
  return sample;
}

}  // namespace components
