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

}  // namespace components
