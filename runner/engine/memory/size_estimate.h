#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/engine/memory/memory_plan.h"

namespace runner::engine {

/// A weight by its name in roux and its shape.
struct ModelTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

struct SizeRequest {
  std::int64_t length = 1;   ///< positions of each sample; of what a decoder writes, too
  bool trains = true;        ///< false: of the model alone
  bool bf16_source = false;  ///< the weights come from files in bfloat16, which adapters leave so
};

/// The result of `estimate_sizes`.
struct SizeEstimate {
  std::vector<ModelTensor> tensors;   ///< in the model's order, without those that are quantized
  std::int64_t quantized_bytes = 0;   ///< of the weights in fewer than 16 bits, with their scales
  std::int64_t trained_elements = 0;  ///< of SizeRequest::trains, like the next
  MemoryPlan training;
};

}  // namespace runner::engine
