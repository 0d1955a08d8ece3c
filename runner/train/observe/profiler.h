#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runner/core/clock.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/progress.h"

namespace runner::train {

/// The files of one cycle.
struct ProfileFiles {
  std::string trace, key_averages;
  std::int64_t first_step = 0, steps = 0;
  std::int64_t step = 0;  ///< the step after the last one
};

struct ProfilerOptions {
  std::string folder;           ///< unless the recipe has `output_trace_dir`
  double flops_per_sample = 0;  ///< of the model
  double peak_flops = 0;        ///< of this machine for the recipe's precision, in FLOP/s; 0 when not measured
  std::function<void(const ProfileFiles&)> written;  ///< called when the files of a cycle are complete
};

/// Records some steps with LibTorch's own profiler, as set by the recipe's `profiler`: operations, kernels of a GPU,
/// ranges around steps (`ProfilerStep#N` after N steps), around each block's forward pass (its name) and around the
/// parts of a step that the Stepper marks. Each cycle writes a trace to `rank-0.TIME_NS.pt.trace.json` in the folder,
/// and next to it a summary as text and JSON. One profiler per process can record at a time; all calls on the loop's
/// thread.
class Profiler {
 public:
  Profiler(Experiment& experiment, ProfilerOptions options, const core::Clock& clock);
  ~Profiler();  ///< discards the recording in progress
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Ends the previous step, whatever its result, and begins the next; of an evaluation a batch is a step. Evaluations
  /// and saves between two calls belong to the earlier step. Does nothing without a profiler in the recipe.
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
