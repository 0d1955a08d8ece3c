#pragma once

#include <cstdint>
#include <memory>

#include "runner/core/tensor_fwd.h"

namespace components {

/// The bfloat16 copy of one weight, updated only when the weight has changed: once per optimizer step, for any number
/// of micro-batches and evaluations. Changes are detected by the weight's version, which every in-place operation
/// increments (optimizer, loading, evaluation weights), and by its address. Gradients go to the weight itself; the copy
/// is no state.
class Bf16WeightCache {
 public:
  Bf16WeightCache();
  ~Bf16WeightCache();
  Bf16WeightCache(const Bf16WeightCache&) = delete;
  Bf16WeightCache& operator=(const Bf16WeightCache&) = delete;

  /// Of a float32 weight, always the same one. A backward pass may keep what it returns beyond the next change.
  at::Tensor in_bf16(const at::Tensor& weight);

 private:
  std::unique_ptr<at::Tensor> copy_;
  const void* address_ = nullptr;
  std::uint32_t version_ = 0;
};

}  // namespace components
