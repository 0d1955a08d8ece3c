#pragma once

// What holds tensors. The headers of the kinds declare these types only, so that their users need no LibTorch.

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace components {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

/// A small map of named activations in order of insertion: passed between blocks, and used for batches.
class TensorMap {
 public:
  const at::Tensor& at(std::string_view name) const;  ///< RUNNER_ASSERT when absent
  const at::Tensor* find(std::string_view name) const;
  void set(std::string_view name, at::Tensor tensor);
  void clear() { items_.clear(); }
  const std::vector<NamedTensor>& items() const { return items_; }

 private:
  std::vector<NamedTensor> items_;
};

}  // namespace components
