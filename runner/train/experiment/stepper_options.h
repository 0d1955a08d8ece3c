#pragma once

#include <cstdint>

#include "components/tensor/autocast.h"
#include "runner/train/data/loader.h"
#include "runner/train/experiment/accumulation.h"
#include "runner/train/experiment/ddp_options.h"
#include "runner/train/experiment/grad_scaler.h"
#include "runner/train/experiment/gradients.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::train {

/// What the loss of a window is averaged over; docs/decisions/0002.
enum class WindowMean {
  kElements,      ///< tokens of a language model, otherwise samples
  kSamples,       ///< every sample weighs the same, regardless of its number of targets
  kMicroBatches,  ///< Accelerate: each micro-batch's mean, divided by the number of accumulation steps
};

struct StepperOptions {
  std::int64_t accumulation_steps = 1;  ///< micro-batches of a window: of one process,
  std::int64_t window_batches = 0;      ///< of all processes; 0: single process
  bool sync_with_dataloader = true;
  WindowMean mean = WindowMean::kElements;
  ScheduleClock::Options schedule;
  Loader::Options loader;
  ClipOptions clip;
  components::AutocastOptions autocast;
  GradScaler::Options scaler;
  DdpOptions ddp;
  bool guard_needs_norm = false;  ///< the guard needs the gradient norm
  bool same_cpu_random = false;   ///< all processes start an epoch with rank 0's state of the CPU's generator,
  bool same_gpu_random = false;   ///< or of their GPU's
  bool rewinds = false;           ///< a step may be undone: keep what its forward pass changes
};

/// Samples of one forward pass of one process.
std::int64_t rank_micro_batch(const resolve::Recipe& recipe);

/// Micro-batches of a window over all processes.
std::int64_t window_batches(const resolve::Recipe& recipe);

/// Samples of one forward pass of an evaluation, in one process.
std::int64_t eval_micro_batch(const resolve::Recipe& recipe);

/// Samples of a batch as `eval.max_batches` counts them, on any number of processes.
std::int64_t counted_batch(const resolve::Recipe& recipe);

/// Samples in this number of these batches, at most the largest number that there is.
std::int64_t counted_samples(const resolve::Recipe& recipe, std::int64_t batches);

/// Samples of a batch that running statistics are measured with, in each process.
std::int64_t bn_batch(const resolve::Recipe& recipe);

/// The options a settled recipe asks for.
StepperOptions stepper_options(const resolve::Recipe& recipe);

}  // namespace runner::train
