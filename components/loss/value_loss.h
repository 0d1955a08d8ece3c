#pragma once

#include <string>

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"

namespace components::loss {

/// A loss of values against values of the same shape: a mean over all elements.
class ValueLoss : public Loss {
 public:
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kTarget).numel(); }
  bool count_is_static() const final { return true; }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const final;

 private:
  /// Both float32, of one shape.
  virtual at::Tensor sum_of_values(const at::Tensor& output, const at::Tensor& target) const = 0;
};

/// Whether output and target are values of one shape; tells the diagnostics if they are not.
bool takes_values(const std::string& name, const Inputs& inputs);

}  // namespace components::loss
