#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace runner::engine {

/// The memory of a GPU, in bytes, beside the tensors.
struct GpuMemoryPlan {
  std::string device;          ///< `cuda:0`; "": the CPU trains
  std::int64_t memory = 0;     ///< that it has; 0: unknown
  std::int64_t workspace = 0;  ///< CUDA's context, kernels and workspaces
  std::int64_t reserve = 0;    ///< for fragmentation
  std::int64_t graph = 0;      ///< that a CUDA graph keeps for itself; 0: none is captured
};

/// Bytes of a training at its peak; see train/experiment/memory_estimate.h.
struct MemoryPlan {
  std::int64_t weights = 0, optimizer = 0, gradients = 0, batches = 0, activations = 0;
  std::int64_t weight_average = 0;   ///< 0: none is kept
  std::int64_t tensors = 0;          ///< sum of those six
  std::int64_t waiting_batches = 0;  ///< in the memory of the CPU; 0: the CPU trains
  std::int64_t data_sets = 0, copies = 0, program = 0;
  std::int64_t process = 0;  ///< the whole process
  std::string when;          ///< where the tensors peak: `in the backward pass of h.3`
  GpuMemoryPlan gpu;         ///< where tensors are on a GPU
};

/// Changes of a recipe, each as `--set` writes it.
using Changes = std::vector<std::string>;

/// Changes of a recipe, and what its training takes with them.
struct Remedy {
  Changes changes;
  bool fits = false;
  std::int64_t needed = 0;  ///< bytes of what there is too little of
};

/// What was tried for a training that does not fit.
struct Remedies {
  std::vector<Remedy> fitting;
  std::optional<Remedy> least;  ///< of all that were tried the one that needs the least, where none fits
};

}  // namespace runner::engine
