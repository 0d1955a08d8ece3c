#pragma once

// What holds tensors. The headers of the kinds declare these types only, so that their users need no LibTorch.

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "runner/core/state.h"

namespace components {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

/// Rows of a tensor that several processes share.
struct TensorRows {
  std::string name;
  at::Tensor rows;
  runner::core::RowsPlace place;
};

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

/// LibTorch's name of a type.
at::ScalarType scalar_type(Dtype dtype);

/// Copies on the CPU of the tensors of these names, all of which `tensors` has; each once.
TensorMap on_cpu(const TensorMap& tensors, const std::vector<std::string>& names);
/// Sample `i` of each tensor, as a batch of one.
TensorMap sample_of(const TensorMap& batch, std::int64_t i);

}  // namespace components
