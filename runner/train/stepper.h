#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/autocast.h"
#include "components/buffer_values.h"
#include "components/random_state.h"
#include "components/tensors.h"
#include "runner/core/log.h"
#include "runner/train/accumulation.h"
#include "runner/train/ddp_options.h"
#include "runner/train/experiment.h"
#include "runner/train/grad_scaler.h"
#include "runner/train/gradients.h"
#include "runner/train/loader.h"
#include "runner/train/progress.h"

namespace runner::train {

class BackwardSteps;
class LocalSgd;
class RankGradients;

/// Over what the loss of a window is averaged; DESIGN.md section 4.
enum class WindowMean {
  kElements,      ///< what the loss counts: tokens of a language model, samples else
  kSamples,       ///< every sample weighs the same, however many targets it has
  kMicroBatches,  ///< Accelerate: each micro-batch's mean, divided by the number of accumulation steps
};

struct StepperOptions {
  std::int64_t accumulation_steps = 1;  ///< micro-batches of a window: of one process,
  std::int64_t window_batches = 0;      ///< of all processes; 0: this one makes them all
  bool sync_with_dataloader = true;
  WindowMean mean = WindowMean::kElements;
  ScheduleClock::Options schedule;
  Loader::Options loader;
  ClipOptions clip;
  components::AutocastOptions autocast;
  GradScaler::Options scaler;
  DdpOptions ddp;
  bool judges_norm = false;  ///< the judge has to know the gradient norm
  bool rewinds = false;      ///< a step may be taken back: what its forward pass moves is kept
};

/// Micro-batches of a window over all processes, as a settled recipe has it.
std::int64_t window_batches(const core::Node& recipe);

/// The options a settled recipe asks for.
StepperOptions stepper_options(const core::Node& recipe);

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
  /// What each rank had to say (Stepper::set_notes), by rank; empty where there is one process.
  std::vector<std::vector<double>> notes;
};

/// Looks at a step before the optimizer moves; false keeps the parameters as they are.
using Judge = std::function<bool(const StepResult&)>;

/// A window that would begin at `from` begins at `to` instead: samples that a rollback left out.
struct DataJump {
  Loader::Position from, to;
};

/// The arithmetic of training: fetch, forward, backward, (accumulate), unscale, clip, step, schedule. Knows no files
/// and no metrics.
class Stepper {
 public:
  Stepper(Experiment& experiment, const StepperOptions& options);
  ~Stepper();

  /// Where several processes train: `count` numbers that each of them tells all others with every step, asked for when
  /// its share of the step is done. They cost nothing. Once, before anything else.
  void set_notes(std::size_t count, std::function<std::vector<double>()> notes);

  /// One optimizer step. `want_grad_norm` costs a pass over the gradients when nothing is clipped. After an exception,
  /// or a judge's no, either rewind() or leave_window() has to follow. A step that overflowed is over: its samples are
  /// left behind, and neither the optimizer nor (unless it moves with each micro-batch) the schedule moved. The judge
  /// is asked about it only when the loss itself is not finite, which no scale can help.
  StepResult step(bool want_grad_norm, const Judge& may_move = {});

  /// Where ranks step by themselves (`local_sgd`): whether their weights are the same now, and makes them so. In
  /// between nothing may look at them that all ranks have to see alike.
  bool ranks_are_one() const;
  void meet();

  /// Tells the schedule what an evaluation found; `metric` as in Scheduler::on_evaluation.
  void note_evaluation(const std::function<const double*(const std::string&)>& metric);

  /// True where a step that failed half-way may be taken back and made again: not while other ranks wait for its sums.
  bool can_rewind() const { return options_.rewinds && experiment_.ranks == nullptr; }
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
  std::int64_t passes() const;

  Loader::Position window_start() const { return window_start_; }  ///< of the step made last
  std::vector<std::int64_t> window_samples() const;                ///< the same, as the data set numbers them
  const std::vector<DataJump>& jumps() const { return jumps_; }
  void set_jumps(std::vector<DataJump> jumps) { jumps_ = std::move(jumps); }

  /// What is not finite after a step whose loss or norm was not, the cause before its consequences: the batch, a
  /// weight, a block's output (the window's last batch is run forward once more), a gradient. "the batch's input",
  /// "parameter h.0.attn_qkv.weight", "output "x" of block h.3", "gradient of wte.weight", or "the loss" alone.
  std::string first_bad_tensor();

  const Progress& progress() const { return progress_; }
  Progress& progress() { return progress_; }
  const Loader& loader() const { return loader_; }
  const std::vector<components::NamedTensor>& parameters() const { return parameters_; }
  const ScheduleClock& schedule() const { return schedule_; }
  GradScaler& scaler() { return scaler_; }
  /// What the exchange of gradients has to remember, of each rank its own; null where that is nothing.
  core::Stateful* exchange_state() const;

  /// Counters, data position and schedule, for a checkpoint.
  core::Node state() const;
  void restore(const core::Node& state);

 private:
  struct MicroBatch {
    components::TensorMap tensors;
    std::int64_t samples = 0;
    std::int64_t count = 0;  ///< elements of the loss's mean
  };

  void begin_window();
  void plan_window();
  void fetch_window();
  void count_window();
  /// Micro-batches of the window that the busiest process makes, as the recipe cuts it.
  std::int64_t rank_batches() const {
    const std::int64_t processes = options_.schedule.num_processes;
    return (recipe_batches_ + processes - 1) / processes;
  }
  void exchange_gradients(StepResult& result);
  void trace(const char* what) const;
  double weight_of(const MicroBatch& micro) const;
  at::Tensor forward(const MicroBatch& micro, double weight);
  void backward(const at::Tensor& sum, double weight);
  /// Forward and backward over the whole window into `result`; the gradients are left in the parameters.
  void accumulate(StepResult& result);
  void note_loss(const MicroBatch& micro, double sum, double weight, StepResult& result) const;
  void note_window(StepResult& result) const;
  /// A step of which each gradient is used and freed as it arrives.
  void step_in_backward(bool want_grad_norm, const Judge& may_move, StepResult& result);
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
  ScheduleClock schedule_;
  GradScaler scaler_;
  Progress progress_;
  std::vector<components::NamedTensor> parameters_;
  std::unique_ptr<BackwardSteps> backward_steps_;  // where the optimizer steps in the backward pass
  std::unique_ptr<RankGradients> rank_gradients_;  // where there are several processes
  std::unique_ptr<LocalSgd> local_sgd_;            // where these step by themselves
  std::function<std::vector<double>()> notes_;
  std::int64_t micro_batch_size_;
  std::vector<DataJump> jumps_;
  Loader::Position window_start_;
  components::RandomState window_random_;
  std::optional<components::BufferValues> window_buffers_;
  bool optimizer_began_ = false;
  const bool traced_ = core::log_options().level == core::LogLevel::kDebug;
  std::vector<std::int64_t> pieces_;                    // samples of each forward pass of the window
  std::int64_t recipe_batches_ = 0;                     // micro-batches of the window as the recipe cuts it
  std::vector<MicroBatch> window_;                      // those of this process; all pieces_ where there is one
  std::int64_t window_count_ = 0, window_samples_ = 0;  // of all processes
  at::Tensor weight_;
  double weight_value_;
};

}  // namespace runner::train
