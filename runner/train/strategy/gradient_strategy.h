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

class GradScaler;

/// A block of the model, and the parameters that it owns.
struct Unit {
  std::string name;
  components::NamedTensors parameters;
};

struct StepPlan {
  double loss_scale = 1.0;      ///< that the gradients of this step are multiplied by
  bool finds_overflow = false;  ///< unscale() is asked
  bool wants_norm = false;      ///< of the gradients, even where nothing is clipped
};

/// One forward and backward pass of this rank.
struct Pass {
  bool first = true, last = true;  ///< of this rank in this step
  std::int64_t others_before = 0;  ///< passes of other ranks since this rank's previous one
};

/// The end of a rank's passes: after a pass that failed, and where this rank had none, too.
struct PassesEnd {
  std::int64_t passes = 0;                            ///< of all ranks in this step
  std::int64_t others_after = 0;                      ///< passes of other ranks since this rank's last one
  const std::function<std::vector<double>()>& notes;  ///< what this rank tells all others
  std::exception_ptr out_of_memory;                   ///< what ended a pass of this rank early; null: nothing did
};

/// Notes by rank; empty where one process trains alone.
using RankNotes = std::vector<std::vector<double>>;

/// The passes of a step once more, for a strategy that moves the parameters in the backward pass.
struct PassAgain {
  std::function<void()> forward;   ///< the graph of the first pass is gone after its backward pass
  std::function<void()> backward;  ///< of the last forward pass
};

/// State that differs from rank to rank.
struct RankState {
  std::string name;  ///< in the checkpoint
  core::Stateful* part;
};

/// How the gradients of a step become the step: it owns their reduction and the storage of the parameters. The stepper
/// calls it at the same points whatever it is and knows no rank; its calls are the same on every rank, and in the order
/// below.
///
/// While the parameters of this rank are not those of the model (`make_whole`), the stepper and the loop keep this
/// order: the average of weights, callbacks, evaluations and saves come after make_whole(); a rollback ends with
/// reloaded(); a step that does not fit into memory is ended by finish() on every rank before it is made again.
class GradientStrategy {
 public:
  virtual ~GradientStrategy() = default;

  // Before training.

  /// The model, block by block. From here on a parameter may get other storage between two steps: keep tensors, not
  /// addresses.
  virtual void attach(const std::vector<Unit>& /*units*/) {}
  /// Whether the hooks of units below are called.
  virtual bool watches_units() const { return false; }

  // A step.

  /// Makes the random generators of all ranks stand where the first one's does.
  virtual void align_generators() {}
  virtual void begin_step(const StepPlan& /*plan*/) {}
  /// By how much more the loss of this rank counts.
  virtual double weight() const { return 1.0; }
  virtual void before_forward(const Pass& /*pass*/) {}
  virtual void before_backward(const Pass& /*pass*/) {}
  virtual void after_backward(const Pass& /*pass*/) {}
  /// True when the backward pass waits until the step is accepted.
  virtual bool defers_backward() const { return false; }
  /// Ends the passes: the gradients are those of all ranks. RunError on each rank where memory ran out on one of them.
  virtual RankNotes finish(const PassesEnd& end) = 0;
  /// Takes the loss scale off the gradients; false when they are not finite.
  virtual bool unscale(const GradScaler& scaler) = 0;
  /// Clips the gradients. Returns their norm before it, where clipping needs it or it is wanted, and known by now.
  virtual std::optional<double> clip(bool wants_norm) = 0;
  /// Norm of all gradients of the model, the same on every rank.
  virtual double norm() const = 0;
  /// Whether update() asks for another forward pass: the batches have to stay.
  virtual bool passes_again() const { return false; }
  /// Which parameters the optimizer moves on this rank, by position.
  virtual bool steps(std::size_t /*parameter*/) const { return true; }
  /// Moves the parameters; `began` is set once one of them may have moved.
  virtual void update(const PassAgain& again, bool& began) = 0;
  /// After step `step`, the first of which is 1.
  virtual void end_step(std::int64_t /*step*/) {}

  // A block of a pass, by its position; backward in reverse order.

  virtual void before_unit_forward(std::size_t /*unit*/) {}
  virtual void after_unit_forward(std::size_t /*unit*/) {}
  virtual void before_unit_backward(std::size_t /*unit*/) {}
  virtual void after_unit_backward(std::size_t /*unit*/) {}

  // Between steps.

  /// False where the ranks have yet to agree on the weights: the loop makes the next step before anything else.
  virtual bool may_pause() const { return true; }
  /// Makes the parameters of this rank those of the model. A collective.
  virtual void make_whole() {}
  /// The parameters were loaded: they are whole.
  virtual void reloaded() {}
  /// What a checkpoint keeps of each rank.
  virtual std::vector<RankState> rank_states() { return {}; }
};

}  // namespace runner::train
