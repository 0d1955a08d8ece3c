#pragma once

#include <vector>

#include "components/tensor/tensors.h"

namespace components {

/// A copy of a model's buffers: a forward pass may change them (running statistics), and one that is undone or repeated
/// must not do so twice.
class BufferSnapshot {
 public:
  /// `buffers` are written to in place by restore().
  explicit BufferSnapshot(NamedTensors buffers);
  void restore() const;

 private:
  NamedTensors buffers_;
  std::vector<at::Tensor> values_;
};

}  // namespace components
