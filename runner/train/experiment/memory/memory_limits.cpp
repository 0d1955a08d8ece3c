#include "runner/train/experiment/memory/memory_limits.h"

#include <algorithm>
#include <string>

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

/// An error if `needed` cannot fit and nothing makes it smaller.
void compare(double needed, double limit, bool shrinks, const core::Location& location, const std::string& message,
             core::Diagnostics& diagnostics) {
  if (needed <= (1.0 - kDoubt) * limit) return;
  if (needed > (1.0 + kDoubt) * limit && !shrinks) {
    diagnostics.error(location, message, kHint);
  } else {
    diagnostics.warning(location, message, kHint);
  }
}

std::string for_tensors(const MemoryEstimate& estimate) {
  return shown(estimate.tensors()) + " for tensors at its peak, " + estimate.when;
}

}  // namespace

void check_gpu_memory(const Experiment& experiment, const MemoryEstimate& estimate, std::int64_t gpu_memory_bytes,
                      core::Diagnostics& diagnostics) {
  if (gpu_memory_bytes == 0) return;
  const auto there = static_cast<double>(gpu_memory_bytes), workspace = static_cast<double>(kGpuWorkspaceBytes);
  const double reserve = kGpuReserve * estimate.tensors(), needed = estimate.tensors() + workspace + reserve;
  compare(needed, there, experiment.recipe.training->auto_micro_batch.has_value(), experiment.recipe.location("device"),
          "the GPU has " + shown(there) + " of memory, but training needs about " + shown(needed) + ": " +
              for_tensors(estimate) + ", " + shown(workspace) + " for CUDA itself, and " + shown(reserve) +
              " for fragmentation",
          diagnostics);
}

void check_memory(const Experiment& experiment, const MemoryEstimate& estimate, std::int64_t gpu_memory_bytes,
                  core::Diagnostics& diagnostics) {
  const auto& recipe = experiment.recipe;
  const auto& training = *recipe.training;
  if (training.max_memory) {
    const Node& max_memory = recipe.at("training.max_memory");
    compare(estimate.tensors(), static_cast<double>(*training.max_memory), training.auto_micro_batch.has_value(),
            max_memory.location(),
            "max_memory is " + max_memory.scalar_text() + ", but training needs about " + for_tensors(estimate),
            diagnostics);
  }
  check_gpu_memory(experiment, estimate, gpu_memory_bytes, diagnostics);
  // The recipe may be meant for another machine.
  const bool on_cpu = device_of(recipe).is_cpu();
  const double needed = on_cpu ? estimate.process() : estimate.host();
  if (const auto there = static_cast<double>(core::memory_limit()); needed > (1.0 - kDoubt) * there) {
    diagnostics.warning(recipe.model.location(),
                        "training needs about " + shown(needed) + (on_cpu ? "" : " in the memory of the CPU") +
                            ", but this machine has " + shown(there) + " of memory",
                        on_cpu ? kHint : kHostHint);
  }
}

}  // namespace runner::train
