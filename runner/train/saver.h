#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "generated/section/checkpoint.h"
#include "runner/core/clock.h"
#include "runner/core/node.h"
#include "runner/core/state.h"
#include "runner/store/run_writer.h"
#include "runner/train/console.h"
#include "runner/train/experiment.h"
#include "runner/train/stepper.h"

namespace runner::checkpoint {
struct TrainState;
}

namespace runner::train {

/// The checkpoints of one training: knows what belongs into them, which was the best, and which may go.
class Saver {
 public:
  Saver(Experiment& experiment, Stepper& stepper, core::Stateful& faults, store::RunWriter& run, Console& console,
        const core::Clock& clock);

  /// Goes on from a checkpoint folder: fills model, optimizer, schedule, callbacks, counters and RNG.
  void restore(const std::string& checkpoint);

  /// Saves the state after the present step, once a step. `eval_metrics`: what an evaluation at this very step found,
  /// by `DATA_SET/METRIC`. RunError when the disk refuses; what was saved before is still whole.
  void save(const std::map<std::string, double>& eval_metrics);

  /// Whether `checkpoint.save_steps` has elapsed between two points.
  bool due(const Progress& before, const Progress& now) const;
  /// Looks at the monitored metric after an evaluation; true when it is the best so far.
  bool note_best(const std::map<std::string, double>& metrics, std::int64_t step);

  const sections::checkpoint::Config& config() const { return config_; }
  const std::string& last_checkpoint() const { return last_checkpoint_; }  ///< "" when none was written or loaded
  const std::optional<double>& best_value() const { return best_value_; }
  std::int64_t best_step() const { return best_step_; }

 private:
  checkpoint::TrainState train_state() const;
  core::Node counters() const;
  void rotate();

  Experiment& experiment_;
  Stepper& stepper_;
  core::Stateful& faults_;
  store::RunWriter& run_;
  Console& console_;
  const core::Clock& clock_;
  const sections::checkpoint::Config config_;
  std::string last_checkpoint_;
  std::optional<double> best_value_;
  std::int64_t best_step_ = 0, saved_step_ = -1;
};

}  // namespace runner::train
