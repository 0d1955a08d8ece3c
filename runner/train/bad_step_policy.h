#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "generated/section/faults.h"
#include "runner/core/state.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/observe/console.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/observe/spike_detector.h"
#include "runner/train/step/stepper.h"

namespace runner::train {

class Saver;

/// What a step does that goes wrong: a loss that is not finite or jumps up (section `faults`), and an allocation that
/// fails (`training.auto_micro_batch`). Everything it decides is a function of what was computed and of its state,
/// which is saved, so that a run that was killed and resumed takes the same decisions.
class BadStepPolicy final : public core::Stateful {
 public:
  enum class Outcome { kMoved, kSkipped, kRolledBack };

  BadStepPolicy(const Experiment& experiment, Stepper& stepper, store::RunWriter& run, Console& console);

  /// One optimizer step into `result`. Skips, overflows of float16 and rollbacks leave no trace in the series: the step
  /// that comes next has the number of the one that was dropped, or that of the checkpoint plus one. RunError when the
  /// policy says stop, the budget is spent, or a step does not fit into memory.
  Outcome step(bool want_grad_norm, Saver& saver, StepResult& result);

  /// Evaluates, with smaller micro-batches where `auto_micro_batch` allows it and the memory asks for it. Nothing when
  /// it was interrupted.
  std::optional<EvalResult> evaluate(const NamedDataset& set, EvalOptions options, Saver& saver);

  /// True when a rollback may come: there has to be a checkpoint before the first step.
  bool may_roll_back() const;
  /// The step just made is about to be saved by the recipe's schedule: rollbacks go here from now on. What is saved
  /// because a run is told to stop does not count, so that a run that was stopped goes back as far as one that was not.
  void note_checkpoint();
  /// Skips, rollbacks and the micro-batch, where they are not zero and not the recipe's.
  void add_to_summary(core::Node& summary) const;

  void save_state(core::StateWriter& writer) const override;
  void load_state(const core::StateReader& reader) override;

 private:
  enum class Action { kIgnore, kStop, kSkip, kRollback };
  struct Trouble {
    std::string kind, what;
    Action action = Action::kIgnore;
  };
  struct AccumulationWindow {
    std::int64_t step;
    Loader::Position start;
  };

  StepResult step_that_fits(bool want_grad_norm, Saver& saver);
  bool give_up_copies(Saver& saver) const;
  void shrink_or_refuse(const std::exception& error, std::int64_t& size, const std::string& what);
  std::optional<Trouble> judge(const StepResult& result) const;
  void find_rank_to_blame(const StepResult& result);
  void remember(const StepResult& result);
  [[noreturn]] void stop(const Trouble& trouble, const std::string& hint);
  void check_budget(const Trouble& trouble);
  void skip(const Trouble& trouble);
  /// A step that the scaler left out: told, and a fault only where no smaller scale can be the way out.
  std::optional<Trouble> overflow(const StepResult& result);
  Action on_nan() const;
  void roll_back(const Trouble& trouble, Saver& saver);
  /// The planned one as long as it is whole, else the newest that is; "" when none is. `skipped` gets a line for each
  /// that was looked at before.
  std::string checkpoint_to_go_back_to(const Saver& saver, std::vector<std::string>& skipped) const;
  core::Node report(const Trouble& trouble);
  /// Of the rank that is to blame, where one of several is.
  std::vector<std::int64_t> bad_samples() const;
  std::string samples_text() const;
  std::string first_bad_tensor();
  std::int64_t failed_step() const { return stepper_.progress().step + 1; }

  const Experiment& experiment_;
  Stepper& stepper_;
  store::RunWriter& run_;
  Console& console_;
  const sections::faults::Config& config_;
  const MicroBatchPolicy micro_batches_;
  SpikeDetector losses_, norms_;
  std::optional<Trouble> trouble_;       // of the step being made
  std::optional<int> to_blame_;          // the one of several ranks whose part of the loss is not finite
  std::vector<std::int64_t> bad_steps_;  // every skip and rollback, in order
  std::int64_t skips_ = 0, rollbacks_ = 0, shrinks_ = 0, overflows_ = 0;
  std::int64_t eval_batch_ = 0;             // 0: as asked for
  std::deque<AccumulationWindow> windows_;  // begun since the checkpoint to go back to, newest last
  std::int64_t checkpoint_step_ = 0, rollbacks_there_ = 0;
};

}  // namespace runner::train
