#pragma once

#include <vector>

#include "components/tensor/tensors.h"

namespace components {

/// What the buffers of a model held at one moment: a forward pass may move them (running statistics), and one that is
/// taken back or made again must not do so twice.
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
