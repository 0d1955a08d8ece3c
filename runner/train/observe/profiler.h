#pragma once

#include <memory>

#include "runner/core/clock.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/progress.h"

namespace runner::train {

/// Records some steps with LibTorch's own profiler, as the recipe's `profiler` says: operations, ranges around steps
/// (`ProfilerStep#N`, N steps were made before it), around each block's forward pass (its name) and around the parts of
/// a step that the Stepper marks. A trace for each cycle goes to `profile/rank-0.TIME_NS.pt.trace.json` in the run's
/// folder, or to `output_trace_dir`; beside it what it adds up to, as text and JSON. One profiler a process can record
/// at a time; all of it on the thread of the loop.
class Profiler {
 public:
  /// `peak_flops`: of this machine for the recipe's precision, in FLOP/s; 0 when not measured.
  Profiler(Experiment& experiment, store::RunWriter& run, double peak_flops, const core::Clock& clock);
  ~Profiler();  ///< drops what is being recorded
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// The step before is over, whatever came of it, and the next one begins. Evaluations and saves between two calls
  /// belong to the earlier step. Nothing to do in a recipe without profiler.
  void next_step(const Progress& progress) {
    if (recorder_ != nullptr) advance(progress);
  }
  /// No step follows. What has been recorded of an unfinished cycle is written.
  void finish(const Progress& progress);

 private:
  class Recorder;
  void advance(const Progress& progress);

  std::unique_ptr<Recorder> recorder_;  ///< null: the recipe asks for nothing
};

}  // namespace runner::train
