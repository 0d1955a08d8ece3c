#include "runner/train/experiment/memory/memory_limits.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "generated/section/training.h"
#include "runner/core/platform/machine.h"
#include "runner/core/units.h"
#include "runner/train/experiment/training_device.h"

namespace runner::train {
namespace {

using core::Node;

/// The estimate may be off by a tenth: above that training cannot fit, below it may not fit.
constexpr double kDoubt = 0.1;
constexpr const char* kHint =
    "use a smaller training.micro_batch_size (auto_micro_batch finds one that fits), or activation_checkpointing";
constexpr const char* kHostHint = "use a smaller model, or less data in memory";

std::string shown(double bytes) { return core::format_bytes(static_cast<std::int64_t>(std::min(bytes, 9e18))); }

/// An error if what is needed cannot fit and nothing makes it smaller.
void compare(const NeededMemory& memory, bool shrinks, const core::Location& location, const std::string& message,
             const std::string& hint, core::Diagnostics& diagnostics) {
  if (memory.fits()) return;
  if (memory.needed > (1.0 + kDoubt) * memory.limit && !shrinks) {
    diagnostics.error(location, message, hint);
  } else {
    diagnostics.warning(location, message, hint);
  }
}

std::string for_tensors(const MemoryEstimate& estimate) {
  return shown(estimate.tensors()) + " for tensors at its peak, " + estimate.when;
}

/// Nothing where its memory is unknown, or the CPU trains.
std::optional<NeededMemory> needed_of_gpu(const MemoryEstimate& estimate, std::int64_t gpu_memory_bytes) {
  if (gpu_memory_bytes == 0) return std::nullopt;
  const double reserve = kGpuReserve * estimate.tensors();
  return NeededMemory{MemoryLimit::kGpu, estimate.tensors() + static_cast<double>(kGpuWorkspaceBytes) + reserve,
                      static_cast<double>(gpu_memory_bytes)};
}

void check_gpu(const Experiment& experiment, const MemoryEstimate& estimate, std::int64_t gpu_memory_bytes,
               const std::string& hint, core::Diagnostics& diagnostics) {
  const auto memory = needed_of_gpu(estimate, gpu_memory_bytes);
  if (!memory) return;
  compare(*memory, experiment.recipe.training->auto_micro_batch.has_value(), experiment.recipe.location("device"),
          "the GPU has " + shown(memory->limit) + " of memory, but training needs about " + shown(memory->needed) +
              ": " + for_tensors(estimate) + ", " + shown(static_cast<double>(kGpuWorkspaceBytes)) +
              " for CUDA itself, and " + shown(kGpuReserve * estimate.tensors()) + " for fragmentation",
          hint, diagnostics);
}

}  // namespace

bool NeededMemory::fits() const { return needed <= (1.0 - kDoubt) * limit; }

std::vector<NeededMemory> needed_memory(const Experiment& experiment, const MemoryEstimate& estimate,
                                        std::int64_t gpu_memory_bytes) {
  std::vector<NeededMemory> all;
  const resolve::Recipe& recipe = experiment.recipe;
  if (const auto& most = recipe.training->max_memory)
    all.push_back({MemoryLimit::kMaxMemory, estimate.tensors(), static_cast<double>(*most)});
  if (const auto of_gpu = needed_of_gpu(estimate, gpu_memory_bytes)) all.push_back(*of_gpu);
  all.push_back({MemoryLimit::kMachine, device_of(recipe).is_cpu() ? estimate.process() : estimate.host(),
                 static_cast<double>(core::memory_limit())});
  return all;
}

void check_gpu_memory(const Experiment& experiment, const MemoryEstimate& estimate, std::int64_t gpu_memory_bytes,
                      core::Diagnostics& diagnostics) {
  check_gpu(experiment, estimate, gpu_memory_bytes, kHint, diagnostics);
}

void check_memory(const Experiment& experiment, const MemoryEstimate& estimate, std::int64_t gpu_memory_bytes,
                  core::Diagnostics& diagnostics, const std::string& hint) {
  const auto& recipe = experiment.recipe;
  const std::string usual = hint.empty() ? kHint : hint;
  for (const NeededMemory& memory : needed_memory(experiment, estimate, gpu_memory_bytes)) {
    if (memory.of == MemoryLimit::kMaxMemory) {
      const Node& max_memory = recipe.at("training.max_memory");
      compare(memory, recipe.training->auto_micro_batch.has_value(), max_memory.location(),
              "max_memory is " + max_memory.scalar_text() + ", but training needs about " + for_tensors(estimate),
              usual, diagnostics);
    } else if (memory.of == MemoryLimit::kGpu) {
      check_gpu(experiment, estimate, gpu_memory_bytes, usual, diagnostics);
    } else if (!memory.fits()) {  // a warning: the recipe may be meant for another machine
      const bool on_cpu = device_of(recipe).is_cpu();
      diagnostics.warning(recipe.model.location(),
                          "training needs about " + shown(memory.needed) + (on_cpu ? "" : " in the memory of the CPU") +
                              ", but this machine has " + shown(memory.limit) + " of memory",
                          on_cpu ? usual : kHostHint);
    }
  }
}

}  // namespace runner::train
