#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>

#include "runner/core/tensor_fwd.h"

namespace components {

/// Memory of the largest tensor of a step, kept from one step to the next. An allocator that cuts what is free into
/// smaller tensors finds no room for it in the next step, and takes new memory beside that.
class ReusedMemory {
 public:
  ReusedMemory();
  ~ReusedMemory();
  ReusedMemory(const ReusedMemory&) = delete;
  ReusedMemory& operator=(const ReusedMemory&) = delete;

  /// On the CPU, with any numbers, in the memory of the last one of this size if nothing uses that any more, else in
  /// new memory. May outlive this.
  at::Tensor matrix(std::int64_t rows, std::int64_t columns, c10::ScalarType type);

 private:
  struct Kept;
  struct Lent;
  std::shared_ptr<Kept> kept_;
};

}  // namespace components
