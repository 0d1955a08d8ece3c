#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/tensor/buffer_snapshot.h"
#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "runner/core/log.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/progress.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/step/accumulation_window.h"
#include "runner/train/step/step_figures.h"

namespace runner::train {

class CapturedStep;
class GradientStrategy;
struct Pass;
class UnitHooks;

struct StepResult {
  double loss = 0;                  ///< mean over the accumulation window
  std::optional<double> grad_norm;  ///< before clipping; only when clipping or requested
  double lr = 0;                    ///< learning rate of this step
  std::int64_t samples = 0, tokens = 0, micro_batches = 0;
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

/// Numbers that each rank sends to all others with every step, collected when its share of the step is done. They cost
/// no extra collective.
struct StepNotes {
  std::size_t count = 0;
  std::function<std::vector<double>()> collect = [] { return std::vector<double>(); };
};

/// A window that would begin at `from` begins at `to` instead: skips the samples that a rollback excluded.
struct DataJump {
  Loader::Position from, to;
};

/// The arithmetic of training: fetch, forward, backward, (accumulate), unscale, clip, step, schedule. No files, no
/// metrics.
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
  bool can_enqueue() const { return enqueues_; }
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
  GradientStrategy& strategy() { return *strategy_; }

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

  Loader::Position window_start() const { return window_start_; }  ///< samples of the last step
  std::vector<std::int64_t> window_samples() const;                ///< the same, as indices of the data set
  /// Those of one rank.
  std::vector<std::int64_t> window_samples_of(int rank) const { return window_.samples_of(rank, window_samples()); }
  const std::vector<DataJump>& jumps() const { return jumps_; }
  void set_jumps(std::vector<DataJump> jumps) { jumps_ = std::move(jumps); }

  /// For a step with a non-finite loss or norm: see first_bad_tensor.h.
  std::string first_bad_tensor();

  const Progress& progress() const { return progress_; }
  Progress& progress() { return progress_; }
  const Loader& loader() const { return loader_; }
  const std::vector<components::NamedTensor>& parameters() const { return parameters_; }
  const ScheduleClock& schedule() const { return schedule_; }
  GradScaler& scaler() { return scaler_; }

  /// Counters, data position and schedule, for a checkpoint.
  core::Node state() const;
  void restore(const core::Node& state);

 private:
  /// An enqueued step and what the device knows of it.
  struct UnreadStep {
    EnqueuedStep step;
    StepFigures figures;
  };

  void begin_window();
  /// Reads the micro-batches of the next step.
  StepResult open_window(bool want_grad_norm);
  /// Everything up to the gradients of the window.
  StepResult run_window(bool want_grad_norm);
  /// Micro-batches of the busiest process in the window, in the recipe's size.
  std::int64_t rank_batches() const {
    const std::int64_t processes = options_.schedule.num_processes;
    return (window_.recipe_batches() + processes - 1) / processes;
  }
  /// Forward and backward over this process's part of the window. Returns the exception when memory ran out: other
  /// processes may wait, and must repeat the step as well.
  std::exception_ptr run_passes(StepResult& result);
  at::Tensor forward_pass(const MicroBatch& micro, components::TensorMap tensors);
  void backward_pass(const MicroBatch& micro, const at::Tensor& sum);
  Pass pass_of(const MicroBatch& micro) const;
  /// Reduces gradients and loss over the ranks.
  void finish_passes(StepResult& result, const std::exception_ptr& out_of_memory);
  /// Unscales and clips the gradients; false when they overflowed.
  bool clip(bool want_grad_norm, StepResult& result);
  /// The same without a wait for the device.
  StepFigures clip_on_device(bool want_grad_norm);
  std::vector<PassWeight> pass_weights() const;
  /// Whether the device looks for values that are not finite.
  bool stops_on_nan() const;
  /// What `bad`, if defined, is after a step with these figures.
  at::Tensor bad_with(const StepFigures& figures, const at::Tensor& bad) const;
  void update();
  bool is_full_window() const;
  /// The rest of an opened step whose window is that of the graph; nothing if there is no memory for a graph.
  std::optional<StepFigures> replay_step();
  void trace(const char* what) const;
  at::Tensor forward(components::TensorMap activations, double weight);
  void backward(const at::Tensor& sum, double weight);
  /// Factor for the gradient of a pass.
  double gradient_weight(const MicroBatch& micro) const;
  PassWeight weight_of(const MicroBatch& micro) const;
  double loss_factor() const;
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
  StepNotes notes_;
  std::unique_ptr<GradientStrategy> strategy_;
  std::unique_ptr<UnitHooks> unit_hooks_;  // null unless the strategy watches units
  at::Tensor pending_;                     // the loss of a forward pass before its backward pass
  std::vector<at::Tensor> sums_;           // of the losses of this window's passes, on their device
  const bool enqueues_;
  std::unique_ptr<CapturedStep> captured_;  // null without compile.cuda_graphs
  std::vector<UnreadStep> unread_;
  at::Tensor bad_;  // on the device, 1 once an enqueued step was not finite; undefined: none was looked at
  std::int64_t micro_batch_size_;
  std::vector<DataJump> jumps_;
  Loader::Position window_start_;
  components::RandomState window_random_;
  std::optional<components::BufferSnapshot> window_buffers_;
  bool optimizer_began_ = false;
  const bool traced_;
  at::Tensor weight_;
  double weight_value_;
};

}  // namespace runner::train
