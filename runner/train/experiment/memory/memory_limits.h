#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/train/experiment/memory/memory_estimate.h"

namespace runner::train {

/// What a process needs of a GPU beside its tensors: CUDA's context, its kernels and the workspace of cuBLAS. A round
/// figure; it depends on the GPU and the driver.
constexpr std::int64_t kGpuWorkspaceBytes = std::int64_t{544} << 20;
/// What fragmentation leaves unusable, of the tensors.
constexpr double kGpuReserve = 0.05;

/// Compares an estimate with the memory of the GPU; 0: unknown, or the CPU trains. An error where training cannot fit,
/// a warning where it may not.
void check_gpu_memory(const Experiment& experiment, const MemoryEstimate& estimate, std::int64_t gpu_memory_bytes,
                      core::Diagnostics& diagnostics);

/// The same, and with `training.max_memory` and the memory of this machine. `hint`: what to do where it does not fit;
/// "": the usual.
void check_memory(const Experiment& experiment, const MemoryEstimate& estimate, std::int64_t gpu_memory_bytes,
                  core::Diagnostics& diagnostics, const std::string& hint = "");

/// What a limit is of.
enum class MemoryLimit { kMaxMemory, kGpu, kMachine };

/// What a training needs of a limit in bytes, and the limit.
struct NeededMemory {
  MemoryLimit of = MemoryLimit::kMachine;
  double needed = 0, limit = 0;

  /// Surely, as the estimate may be off by a tenth.
  bool fits() const;
};

/// By limit: those that the recipe and its device have.
std::vector<NeededMemory> needed_memory(const Experiment& experiment, const MemoryEstimate& estimate,
                                        std::int64_t gpu_memory_bytes);

}  // namespace runner::train
