#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/TensorOptions.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace runner::train {

/// The memory of parameters that are not in use, kept for others of the same size.
class WeightMemory {
 public:
  /// The parameter gets that many bytes, at least its size, with any numbers; nothing where it has memory. It keeps its
  /// version: a graph that saved it stays valid.
  void give(const at::Tensor& parameter, std::size_t bytes);
  /// Takes it back; the parameter has its shape and no memory.
  void take(const at::Tensor& parameter);
  /// Some numbers [elements] in that memory, for which `bytes` are enough; take() takes it back.
  at::Tensor lend(std::int64_t elements, std::size_t bytes, const at::TensorOptions& options);
  void clear() { free_.clear(); }

 private:
  std::map<std::size_t, std::vector<c10::DataPtr>> free_;  // by bytes
};

}  // namespace runner::train
