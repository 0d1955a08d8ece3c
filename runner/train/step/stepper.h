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

namespace runner::train {

class GradientStrategy;
struct Pass;
class UnitHooks;

struct StepResult {
  double loss = 0;                  ///< mean over the window
  std::optional<double> grad_norm;  ///< before clipping; only when clipping or asked for
  double lr = 0;                    ///< that this step used
  std::int64_t samples = 0, tokens = 0, micro_batches = 0;
  double data_seconds = 0;           ///< spent waiting for samples
  std::vector<double> micro_losses;  ///< mean of each forward pass
  bool moved = true;        ///< false: the judge said no, or `overflowed`; the parameters are those of the step before
  bool overflowed = false;  ///< gradients of float16 were not finite: the loss scale is smaller now
  std::optional<double> loss_scale;  ///< that this step used; nothing where the loss is not scaled
  /// Each rank's part of the loss; empty where there is one process.
  std::vector<double> rank_losses;
  /// What each rank had to say (StepNotes), by rank; empty where there is one process.
  std::vector<std::vector<double>> notes;
};

/// Looks at a step before the optimizer moves; false keeps the parameters as they are.
using Judge = std::function<bool(const StepResult&)>;

/// Numbers that each of several processes tells all others with every step, asked for when its share of the step is
/// done. They cost nothing.
struct StepNotes {
  std::size_t count = 0;
  std::function<std::vector<double>()> tell = [] { return std::vector<double>(); };
};

/// A window that would begin at `from` begins at `to` instead: samples that a rollback left out.
struct DataJump {
  Loader::Position from, to;
};

/// The arithmetic of training: fetch, forward, backward, (accumulate), unscale, clip, step, schedule. Knows no files
/// and no metrics.
class Stepper {
 public:
  Stepper(Experiment& experiment, const StepperOptions& options, StepNotes notes = {});
  ~Stepper();

  /// One optimizer step. `want_grad_norm` costs a pass over the gradients when nothing is clipped. After an exception,
  /// or a judge's no, either rewind() or leave_window() has to follow. A step that overflowed is over: its samples are
  /// left behind, and neither the optimizer nor (unless it moves with each micro-batch) the schedule moved. The judge
  /// is asked about it only when the loss itself is not finite, which no scale can help.
  StepResult step(bool want_grad_norm, const Judge& may_move = {});

  /// How gradients become steps: asked before something looks at the weights between two steps, and before a save.
  GradientStrategy& strategy() { return *strategy_; }

  /// Tells the schedule what an evaluation found; `metric` as in Scheduler::on_evaluation.
  void note_evaluation(const std::function<const double*(const std::string&)>& metric);

  /// True where a step that failed half-way may be taken back and made again, by all ranks.
  bool can_rewind() const { return options_.rewinds; }
  /// Back to before the step that failed: data, random numbers; gradients are dropped.
  void rewind();
  /// Drops the step that the judge refused, as if its samples did not exist: the position stays behind them.
  void leave_window();
  /// True when the step that threw had begun to move parameters: it cannot be made again.
  bool optimizer_began() const { return optimizer_began_; }

  /// Samples of one forward pass: what the recipe says, or less since a step did not fit into memory. The windows, and
  /// what counts micro-batches (the schedule of Accelerate, intervals in `ba`), stay those of the recipe.
  std::int64_t micro_batch_size() const { return micro_batch_size_; }
  void set_micro_batch_size(std::int64_t samples) {
    micro_batch_size_ = samples;
    loader_.expect(samples);
  }
  /// Forward passes of a full window.
  std::int64_t passes() const { return full_passes(options_, micro_batch_size_); }

  Loader::Position window_start() const { return window_start_; }  ///< of the step made last
  std::vector<std::int64_t> window_samples() const;                ///< the same, as the data set numbers them
  /// Those that one of the ranks had.
  std::vector<std::int64_t> window_samples_of(int rank) const { return window_.samples_of(rank, window_samples()); }
  const std::vector<DataJump>& jumps() const { return jumps_; }
  void set_jumps(std::vector<DataJump> jumps) { jumps_ = std::move(jumps); }

  /// Of a step whose loss or norm was not finite: see first_bad_tensor.h.
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
  void begin_window();
  /// Micro-batches of the window that the busiest process makes, as the recipe cuts it.
  std::int64_t rank_batches() const {
    const std::int64_t processes = options_.schedule.num_processes;
    return (window_.recipe_batches() + processes - 1) / processes;
  }
  /// Forward and backward over this process's part of the window. What it threw where memory ran out: other processes
  /// may wait, and have to make the step again as well.
  std::exception_ptr run_passes(StepResult& result);
  at::Tensor forward_pass(const MicroBatch& micro);
  void backward_pass(const MicroBatch& micro, const at::Tensor& sum);
  Pass pass_of(const MicroBatch& micro) const;
  /// The gradients and the loss become those of the whole window.
  void finish_passes(StepResult& result, const std::exception_ptr& out_of_memory);
  void update();
  void trace(const char* what) const;
  at::Tensor forward(const MicroBatch& micro, double weight);
  void backward(const at::Tensor& sum, double weight);
  void note_loss(const MicroBatch& micro, double sum, double weight, StepResult& result) const;
  void note_window(StepResult& result) const;
  /// The end of a step whose scaled gradients are not finite.
  void leave_overflow(const Judge& may_move, StepResult& result);
  void end_step(const StepResult& result);
  /// The end of a window for the schedule and the counters; `moved`: the optimizer did.
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
  at::Tensor pending_;                     // the loss of a forward pass whose backward pass is yet to come
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
