#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/state.h"

namespace runner::train {

struct Experiment;
class GradScaler;
struct StepperOptions;

/// A block of the model, and the parameters that it owns.
struct Unit {
  std::string name;
  components::NamedTensors parameters;
};

/// The parts of a training, from begin() to end().
struct StrategyInputs {
  Experiment& experiment;
  const components::NamedTensors& parameters;  ///< of the model
  const StepperOptions& options;
  std::size_t notes = 0;  ///< numbers that each rank sends with every step
};

struct StepPlan {
  double loss_scale = 1.0;      ///< loss scale of this step's gradients
  bool finds_overflow = false;  ///< unscale() is called
  bool wants_norm = false;      ///< norm of the gradients is wanted, even without clipping
  std::int64_t passes = 1;      ///< of all ranks
};

/// One forward and backward pass of this rank.
struct Pass {
  bool first = true, last = true;  ///< of this rank in this step
  std::int64_t others_before = 0;  ///< passes of other ranks since this rank's previous one
};

/// The end of a rank's passes, also after a failed pass and if this rank had none.
struct PassesEnd {
  std::int64_t passes = 0;                            ///< of all ranks in this step
  std::int64_t others_after = 0;                      ///< passes of other ranks since this rank's last one
  const std::function<std::vector<double>()>& notes;  ///< what this rank sends to all others
  std::exception_ptr out_of_memory;                   ///< exception that ended a pass of this rank; null: none
};

/// Notes by rank; empty with one process.
using RankNotes = std::vector<std::vector<double>>;

/// What a step's gradients showed, as float32 scalars on their device; undefined: not asked for.
struct GradientFigures {
  at::Tensor overflow;  ///< not 0 if a scaled gradient was not finite
  at::Tensor norm;      ///< of clip()
};

/// Repeats the passes of a step, for a strategy that updates the parameters in the backward pass.
struct SecondPass {
  std::function<void()> forward;   ///< the graph of the first pass is gone after its backward pass
  std::function<void()> backward;  ///< of the last forward pass
};

/// What a process holds of weights and gradients while it makes the passes of a step.
struct HeldBytes {
  std::int64_t weights = 0;
  std::int64_t exchange = 0;  ///< of both on their way
  std::int64_t last = 0;      ///< on their way behind the passes, when nothing else is
  std::int64_t summed = 0;    ///< what is left of whole gradients after the passes
};

/// State that differs between ranks.
struct RankState {
  std::string name;  ///< name in the checkpoint
  core::Stateful* part;
};

/// Turns the gradients of a step into the update: owns their reduction and the storage of the parameters. The stepper
/// calls every strategy at the same points and knows no ranks; the calls are the same on every rank, and in the order
/// below.
///
/// While the parameters of this rank are not those of the model (`sync_weights`), the stepper and the loop keep this
/// order: weight averaging, callbacks, evaluations and saves come after sync_weights(); a rollback ends with
/// on_weights_loaded(); a step that does not fit into memory is ended by finish() on every rank before it is repeated.
class GradientStrategy {
 public:
  virtual ~GradientStrategy() = default;

  // With the experiment, before its optimizer is made.

  /// Gets the model, block by block. From here on a parameter's storage may change between two steps: keep tensors, not
  /// addresses.
  virtual void attach(const std::vector<Unit>& units) { units_ = units; }
  /// What the optimizer moves, and what is averaged with `weight_averaging`: tensors with gradients, by the names of
  /// the parameters that they are or are part of. By default the parameters of the units, in order.
  virtual components::NamedTensors optimizer_tensors() {
    components::NamedTensors tensors;
    for (const Unit& unit : units_) tensors.insert(tensors.end(), unit.parameters.begin(), unit.parameters.end());
    return tensors;
  }

  // Before and after a training. Of one experiment there may be several, one after the other.

  virtual void begin(const StrategyInputs& inputs) = 0;
  /// Lets go of what begin() was given.
  virtual void end() = 0;
  /// Whether the unit hooks below are called.
  virtual bool wants_unit_hooks() const { return false; }

  // A step.

  /// At the start of an epoch: sets those random generators to rank 0's state that the recipe synchronizes.
  virtual void sync_rng_states() {}
  virtual void begin_step(const StepPlan& /*plan*/) {}
  /// Factor for the loss of this rank.
  virtual double weight() const { return 1.0; }
  virtual void before_forward(const Pass& /*pass*/) {}
  virtual void before_backward(const Pass& /*pass*/) {}
  virtual void after_backward(const Pass& /*pass*/) {}
  /// True when the backward pass waits until the step is accepted.
  virtual bool defers_backward() const { return false; }
  /// Ends the passes: the gradients are reduced over all ranks. RunError on every rank if memory ran out on one.
  virtual RankNotes finish(const PassesEnd& end) = 0;
  /// Takes the loss scale off the gradients; false when they are not finite.
  virtual bool unscale(const GradScaler& scaler) = 0;
  /// Clips the gradients. Returns their norm before clipping, if needed or wanted and known by now.
  virtual std::optional<double> clip(bool wants_norm) = 0;
  /// True if nothing up to update() needs to wait for the device: unscale_and_clip() is then called in place of the two
  /// above, and losses and figures are read together. Not for a strategy with needs_second_pass(). The same in every
  /// step, like that.
  virtual bool stays_on_device() const { return false; }
  virtual GradientFigures unscale_and_clip(const GradScaler& /*scaler*/, bool /*wants_norm*/) { return {}; }
  /// Norm of all gradients of the model, the same on every rank.
  virtual double norm() const = 0;
  /// Whether update() runs another forward pass: keep the batches.
  virtual bool needs_second_pass() const { return false; }
  /// Which parameters the optimizer moves on this rank, by position.
  virtual bool steps(std::size_t /*parameter*/) const { return true; }
  /// Updates the parameters; `began` is set once one of them may have changed.
  virtual void update(const SecondPass& again, bool& began) = 0;
  /// Call after step `step`, counted from 1.
  virtual void end_step(std::int64_t /*step*/) {}

  /// What this process keeps of a parameter's gradient once the backward pass has it.
  virtual std::int64_t held_gradient_bytes(const at::Tensor& parameter) const {
    return static_cast<std::int64_t>(parameter.nbytes());
  }

  /// Nothing: all weights, and the gradients that they have.
  virtual std::optional<HeldBytes> held_bytes() const { return {}; }
  /// Gives a model on the meta device weights of the types that they have in a pass, or their own ones back.
  virtual void set_types_of_pass(bool /*of_pass*/) {}
  /// Processes that divide a checkpoint's tensors among them, each writing its rows.
  virtual int processes_that_save() const { return 1; }

  /// Whether whole gradients are exchanged in buckets, which are kept from one step to the next: a pass that exchanges
  /// copies each gradient there and frees it.
  virtual bool keeps_buckets() const { return false; }
  /// Bytes of each tensor that update() sends weights in, after the optimizer's step.
  virtual std::vector<std::int64_t> sharing_bytes() const { return {}; }

  // A block of a pass, by position; backward in reverse order.

  virtual void before_unit_forward(std::size_t /*unit*/) {}
  virtual void after_unit_forward(std::size_t /*unit*/) {}
  virtual void before_unit_backward(std::size_t /*unit*/) {}
  virtual void after_unit_backward(std::size_t /*unit*/) {}

  // Between steps.

  /// False if the weights of the ranks differ: the loop makes the next step before anything else.
  virtual bool weights_in_sync() const { return true; }
  /// Makes the parameters of this rank those of the model. A collective.
  virtual void sync_weights() {}
  /// Whether the parameters of this rank are whole only in a pass, and where hold_weights() or gather_state() has made
  /// them so.
  virtual bool holds_rows_alone() const { return false; }
  /// Makes the parameters of this rank whole until the next step. A collective.
  virtual void hold_weights() {}
  /// Around a forward pass of an evaluation. Where a strategy holds_rows_alone(), all ranks make as many, and one that
  /// has no batch makes an empty one; end_forward() also ends a pass that failed.
  virtual void begin_forward() {}
  virtual void end_forward() {}
  /// Around writing to one parameter, where a rank otherwise holds rows of it alone.
  virtual void open_weight(const std::string& /*name*/) {}
  virtual void close_weight(const std::string& /*name*/) {}
  /// Calls `fill` with all parameters there, or for one part of them after the other, for writing to some of them by
  /// others of their block. A collective of all ranks.
  virtual void fill_in_parts(const std::function<void()>& fill) { fill(); }
  /// The parameters are about to be written to.
  virtual void before_weights_loaded() {}
  /// The parameters were loaded and are complete.
  virtual void on_weights_loaded() {}
  /// Around a change of what optimizer_tensors() gave by another than the optimizer: puts averages into the model, and
  /// takes them out. The parameters of this rank are those of the model again after refresh_weights() or
  /// sync_weights(), or with the next step.
  virtual void before_tensors_written() {}
  virtual void on_tensors_written() {}
  /// Makes the parameters of this rank as whole as they were before on_tensors_written(). A collective.
  virtual void refresh_weights() {}
  /// What saves and loads the state of `part`, by the tensors of optimizer_tensors(), which in a checkpoint is that of
  /// whole parameters. It lives until end().
  virtual core::Stateful& state_of(core::Stateful& part) { return part; }
  /// Whether each rank can save its rows of weights and optimizer itself. Without gather_state(), state_of() then saves
  /// those.
  virtual bool saves_rows() const { return false; }
  /// This rank's rows of the weights; none where another rank saves the same.
  virtual std::vector<components::TensorRows> saved_rows() { return {}; }
  /// Before weights are loaded: what of this rank is filled in place of the parameters of these names, which then need
  /// no memory. None: the parameters are, after before_weights_loaded().
  virtual std::vector<components::TensorRows> rows_to_load() { return {}; }
  /// Call before a save by rank 0 alone. A collective: rank 0 then has the whole parameters, and all of what
  /// state_of() saves.
  virtual void gather_state() {}
  /// The state of each rank in a checkpoint.
  virtual std::vector<RankState> rank_states() { return {}; }

 private:
  std::vector<Unit> units_;
};

}  // namespace runner::train
