#pragma once

#include <cstdint>
#include <deque>
#include <functional>
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

/// Handles steps that fail: a loss that is not finite or spikes (section `faults`), and an allocation that fails
/// (`training.auto_micro_batch`). Its decisions depend only on computed values and on its saved state, so a run that
/// was killed and resumed makes the same ones.
class BadStepPolicy final : public core::Stateful {
 public:
  enum class Outcome { kStepped, kSkipped, kRolledBack };

  BadStepPolicy(const Experiment& experiment, Stepper& stepper, store::RunWriter& run, Console& console);

  /// Makes one optimizer step into `result`; `reads`: its loss and gradient norm are wanted at once. Skips, float16
  /// overflows and rollbacks leave no trace in the series: the next step takes the number of the dropped one, or the
  /// checkpoint's plus one. RunError when the policy is `stop`, the budget is used up, or a step does not fit into
  /// memory.
  Outcome step(bool reads, Saver& saver, StepResult& result);

  /// Reads what another device than the CPU knows of the steps since it was asked last, and completes the result of the
  /// last one. Call before anything depends on them; does nothing when all are known. RunError when one was bad, about
  /// the first such step.
  void read_steps(Saver& saver, StepResult& last);

  /// Evaluates, with smaller micro-batches when memory runs out and `auto_micro_batch` allows it. Nothing when
  /// interrupted.
  std::optional<EvalResult> evaluate(const NamedDataset& set, EvalOptions options, Saver& saver);

  /// True when a rollback is possible: there must be a checkpoint before the first step.
  bool may_roll_back() const;
  /// The recipe's schedule is about to save the step just made: rollbacks return here from now on. A save made because
  /// the run was told to stop does not count, so a stopped run rolls back as far as an undisturbed one.
  void note_checkpoint();
  /// Skips and rollbacks unless zero, and the micro-batch size unless it is the recipe's.
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

  /// `make` makes the step, and makes it again when it did not fit into memory.
  StepResult step_that_fits(const std::function<StepResult()>& make, Saver& saver);
  bool switch_to_sync_saves(Saver& saver) const;
  void shrink_or_refuse(const std::exception& error, std::int64_t& size, const std::string& what);
  std::optional<Trouble> judge(const StepResult& result) const;
  void find_bad_rank(const StepResult& result);
  void remember(const StepResult& result);
  [[noreturn]] void stop(const Trouble& trouble, const std::string& hint);
  void check_budget(const Trouble& trouble);
  void skip(const Trouble& trouble);
  /// Reports a step that the scaler skipped; a fault only when no smaller scale can help.
  std::optional<Trouble> overflow(const StepResult& result);
  Action on_nan() const;
  void roll_back(const Trouble& trouble, Saver& saver);
  /// The planned checkpoint if it is intact, else the newest that is; "" when none is. `skipped` gets a line for each
  /// one rejected.
  std::string rollback_checkpoint(const Saver& saver, std::vector<std::string>& skipped) const;
  core::Node report(const Trouble& trouble);
  /// Samples of the bad rank if it is known, otherwise of all ranks.
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
  std::optional<Trouble> trouble_;       // of the current step
  std::optional<int> bad_rank_;          // the rank with a part of the loss that is not finite
  std::vector<std::int64_t> bad_steps_;  // every skip and rollback, in order
  std::int64_t skips_ = 0, rollbacks_ = 0, shrinks_ = 0, overflows_ = 0;
  std::int64_t eval_batch_ = 0;             // 0: the recipe's
  std::deque<AccumulationWindow> windows_;  // steps begun since the rollback target, newest last
  std::int64_t checkpoint_step_ = 0, rollbacks_there_ = 0;
};

}  // namespace runner::train
