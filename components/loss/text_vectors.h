#pragma once

#include <cstdint>
#include <string>

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"

namespace components::loss {

/// A loss of records whose texts have vectors [B, K, C]: a mean over records.
class TextVectorsLoss : public Loss {
 public:
  std::int64_t count(const TensorMap& batch) const final;
  bool count_is_static() const final { return true; }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const final;

 private:
  /// vectors_BKC: float32, each of length 1.
  virtual at::Tensor sum_of_vectors(const at::Tensor& vectors_BKC, const TensorMap& tensors) const = 0;
};

/// Whether the model gives vectors of `texts` texts of a record, or of more where `or_more`; tells the diagnostics if
/// it does not.
bool has_vectors(const std::string& name, std::int64_t texts, bool or_more, const Inputs& inputs);

}  // namespace components::loss
