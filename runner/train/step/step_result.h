#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "components/tensor/random_state.h"
#include "runner/train/data/loader.h"
#include "runner/train/experiment/progress.h"

namespace runner::train {

struct StepResult {
  double loss = 0;                  ///< mean over the accumulation window
  std::optional<double> grad_norm;  ///< before clipping; only when clipping or requested
  double lr = 0;                    ///< learning rate of this step
  /// What the loss measures beside its sum, by Loss::figure_names(): means over the accumulation window; nothing where
  /// it has no element of one.
  std::vector<std::optional<double>> figures = {};
  std::int64_t samples = 0, tokens = 0, micro_batches = 0;
  std::int64_t target_tokens = 0;    ///< AccumulationWindow::target_tokens()
  double flops = 0;                  ///< AccumulationWindow::flops()
  double data_seconds = 0;           ///< time spent waiting for samples
  std::vector<double> micro_losses;  ///< mean of each forward pass
  bool stepped = true;               ///< false: refused by the guard, or `overflowed`; the parameters are unchanged
  bool overflowed = false;           ///< float16 gradients were not finite: the loss scale was reduced
  bool is_read = true;               ///< false: the device still has the losses and the norm
  std::optional<double> loss_scale;  ///< loss scale of this step; nothing if the loss is not scaled
  /// Each rank's part of the loss; empty with one process.
  std::vector<double> rank_losses;
  /// Each rank's StepNotes, by rank; empty with one process.
  std::vector<std::vector<double>> notes;
};

/// Where a step began.
struct StepStart {
  Progress progress;
  std::int64_t schedule_step = 0, schedule_calls = 0, micro_batch_size = 0;
  Loader::Position position;
  components::RandomState random;
};

/// A step that was enqueued, after its result was read.
struct EnqueuedStep {
  StepResult result;
  StepStart start;
};

/// Inspects a step before the optimizer steps; false keeps the parameters unchanged.
using StepGuard = std::function<bool(const StepResult&)>;

/// Numbers that each rank sends to all others with every step, collected when its part of the step is done. They cost
/// no extra collective.
struct StepNotes {
  std::size_t count = 0;
  std::function<std::vector<double>()> collect = [] { return std::vector<double>(); };
};

}  // namespace runner::train
