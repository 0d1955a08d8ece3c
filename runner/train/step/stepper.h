#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/progress.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/step/accumulation_window.h"
#include "runner/train/step/step_result.h"
#include "runner/train/step/unread_steps.h"
#include "runner/train/step/window_start.h"

namespace runner::train {

class GradientStrategy;
class PassHooks;
class PassRunner;
struct StrategyInputs;

/// A window that would begin at `from` begins at `to` instead: skips the samples that a rollback excluded.
struct DataJump {
  Loader::Position from, to;
};

/// The arithmetic of training: fetch, forward, backward, (accumulate), unscale, clip, step, schedule. No files, no
/// metrics. The order of the passes is the PassRunner's, the update the GradientStrategy's.
class Stepper {
 public:
  Stepper(Experiment& experiment, const StepperOptions& options, StepNotes notes = {});
  ~Stepper();

  /// One optimizer step. `want_grad_norm` costs a pass over the gradients unless they are clipped. After an exception,
  /// or a refusal by the guard, call rewind() or drop_window(). A step that overflowed is complete: its samples are
  /// consumed, and neither the optimizer nor (unless it advances per micro-batch) the schedule moved. The guard sees it
  /// only when the loss itself is not finite, which no scale can fix.
  StepResult step(bool want_grad_norm, const StepGuard& may_step = {});

  /// True if a device other than the CPU decides whether a step is made; see experiment/step_wait.h.
  bool can_enqueue() const;
  /// One optimizer step without a wait for the device: `is_read` is false in its result. With `faults.on_nan: stop` the
  /// device leaves weights and optimizer state as they are from the first step on whose loss or norm is not finite, and
  /// the CPU counts such steps as made until it reads them. Exceptions as from step().
  StepResult enqueue_step(bool want_grad_norm);
  /// Number of enqueued steps that read_steps() would return.
  std::size_t unread_steps() const { return unread_.size(); }
  /// Waits for the device once, for the results of the enqueued steps, oldest first.
  std::vector<EnqueuedStep> read_steps();
  /// Returns to the start of the first step that was not finite, whose weights are still there: step() repeats it. The
  /// counters of the optimizer, running statistics and averaged weights stay those of the later steps.
  void return_to(const StepStart& start);

  /// How gradients become steps: consulted before anything reads the weights between two steps, and before a save.
  GradientStrategy& strategy() { return strategy_; }

  /// Passes the result of an evaluation to the schedule; `metric` as in Scheduler::on_evaluation.
  void note_evaluation(const std::function<const double*(const std::string&)>& metric);

  /// True if a step that failed half-way can be undone and repeated, by all ranks.
  bool can_rewind() const { return options_.rewinds; }
  /// Returns to before the failed step: data, random numbers; gradients are dropped.
  void rewind();
  /// Drops the step that the guard refused, as if its samples did not exist: the position stays after them.
  void drop_window();
  /// True when the step that threw had begun to update parameters: it cannot be repeated.
  bool optimizer_began() const { return optimizer_began_; }

  /// Samples of one forward pass: the recipe's, or fewer after a step did not fit into memory. Windows and counts of
  /// micro-batches (the schedule of Accelerate, intervals in `ba`) stay the recipe's.
  std::int64_t micro_batch_size() const { return micro_batch_size_; }
  void set_micro_batch_size(std::int64_t samples);
  /// Forward passes of a full window.
  std::int64_t passes() const { return full_passes(options_, micro_batch_size_); }

  Loader::Position window_start() const { return window_start_.position(); }  ///< samples of the last step
  std::vector<std::int64_t> window_samples() const;                           ///< the same, as indices of the data set
  /// Those of one rank.
  std::vector<std::int64_t> window_samples_of(int rank) const { return window_.samples_of(rank, window_samples()); }
  const std::vector<DataJump>& jumps() const { return jumps_; }
  void set_jumps(std::vector<DataJump> jumps) { jumps_ = std::move(jumps); }

  /// For a step with a non-finite loss or norm: see first_bad_tensor.h.
  std::string first_bad_tensor();

  const Progress& progress() const { return progress_; }
  Progress& progress() { return progress_; }
  const Loader& loader() const { return loader_; }
  const std::vector<components::NamedTensor>& parameters() const { return parameters_; }  ///< those that are trained
  const ScheduleClock& schedule() const { return schedule_; }
  GradScaler& scaler() { return scaler_; }

  /// Counters, data position and schedule, for a checkpoint.
  core::Node state() const;
  void restore(const core::Node& state);

 private:
  /// From the strategy's begin() to its end().
  class StrategyUse {
   public:
    StrategyUse(GradientStrategy& strategy, const StrategyInputs& inputs);
    ~StrategyUse();
    StrategyUse(const StrategyUse&) = delete;
    StrategyUse& operator=(const StrategyUse&) = delete;

   private:
    GradientStrategy& strategy_;
  };

  void seek_behind_jumps();
  /// Reads the micro-batches of the next step.
  StepResult open_window(bool want_grad_norm);
  void note_window(StepResult& result) const;
  /// Ends a step with scaled gradients that are not finite.
  void leave_overflow(const StepGuard& may_step, StepResult& result);
  void end_step(const StepResult& result);
  /// Ends a window for the schedule and the counters; `moved`: the optimizer stepped.
  void close_window(bool moved);
  void apply_schedule();
  void count_progress(const StepResult& result);
  void count_epochs();

  Experiment& experiment_;
  StepperOptions options_;
  Loader loader_;
  AccumulationWindow window_;
  ScheduleClock schedule_;
  GradScaler scaler_;
  Progress progress_;
  std::vector<components::NamedTensor> parameters_;
  GradientStrategy& strategy_;  // the experiment's
  StrategyUse use_;             // what follows may call it
  std::unique_ptr<PassHooks> hooks_;
  std::unique_ptr<PassRunner> runner_;
  WindowStart window_start_;
  UnreadSteps unread_;
  std::int64_t micro_batch_size_;
  std::vector<DataJump> jumps_;
  bool optimizer_began_ = false;
};

}  // namespace runner::train
