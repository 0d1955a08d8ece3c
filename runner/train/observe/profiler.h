#pragma once

#include <memory>

#include "runner/core/clock.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/progress.h"

namespace runner::train {

/// Records some steps with LibTorch's own profiler, as set by the recipe's `profiler`: operations, kernels of a GPU,
/// ranges around steps (`ProfilerStep#N` after N steps), around each block's forward pass (its name) and around the
/// parts of a step that the Stepper marks. Each cycle writes a trace to `profile/rank-0.TIME_NS.pt.trace.json` in the
/// run's folder, or to `output_trace_dir`, and next to it a summary as text and JSON. One profiler per process can
/// record at a time; all calls on the loop's thread.
class Profiler {
 public:
  /// `peak_flops`: of this machine for the recipe's precision, in FLOP/s; 0 when not measured.
  Profiler(Experiment& experiment, store::RunWriter& run, double peak_flops, const core::Clock& clock);
  ~Profiler();  ///< discards the recording in progress
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Ends the previous step, whatever its result, and begins the next. Evaluations and saves between two calls belong
  /// to the earlier step. Does nothing without a profiler in the recipe.
  void next_step(const Progress& progress) {
    if (recorder_ != nullptr) advance(progress);
  }
  /// Call after the last step: writes what was recorded of an unfinished cycle.
  void finish(const Progress& progress);

 private:
  class Recorder;
  void advance(const Progress& progress);

  std::unique_ptr<Recorder> recorder_;  ///< null: no profiler in the recipe
};

}  // namespace runner::train
