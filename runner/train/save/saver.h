#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generated/section/checkpoint.h"
#include "runner/artifact/io/aligned_bytes.h"
#include "runner/artifact/io/throttle.h"
#include "runner/core/clock.h"
#include "runner/core/node.h"
#include "runner/core/state.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/observe/console.h"
#include "runner/train/observe/signals.h"
#include "runner/train/save/save_throttle.h"
#include "runner/train/step/stepper.h"

namespace runner::checkpoint {
class CheckpointPrefetch;
class Snapshot;
struct TrainState;
}  // namespace runner::checkpoint

namespace runner::train {

class RankStates;
class SaveTask;

/// The checkpoints of one training: knows what belongs into them, which was the best, and which may go.
///
/// A save copies the state (`checkpoint.async_save`) or writes it, and returns; a thread does what is left of writing,
/// verifying, committing and rotating. After a copy it rests between pieces of that, as far as the time to the next
/// save allows, so that the steps beside it keep their speed. At most one save is under way: the next one waits for it,
/// and nothing that is waited for rests. What went wrong on the thread is thrown by the next call here.
class Saver {
 public:
  enum class When {
    kBetweenSteps,
    kAtTheEnd,  ///< nothing follows that could go on meanwhile
  };

  Saver(Experiment& experiment, Stepper& stepper, core::Stateful& faults, store::RunWriter& run, Console& console,
        const SignalWatch& signals, const core::Clock& clock);
  /// Waits for what is under way; a save that waits for room on the disk gives up.
  ~Saver();

  /// One more part of the training that has a state, under a name of its own; before restore() and save().
  void add_state(const std::string& name, core::Stateful& part) { more_state_.emplace_back(name, &part); }

  /// The same for a part of which each rank has a state of its own.
  void add_rank_state(const std::string& name, core::Stateful& part);

  /// Before the first step: tries the folder (RunError when it would refuse a checkpoint) and gets the memory that the
  /// copies need.
  void prepare();
  /// How a checkpoint came to be the one to go on from.
  struct Found {
    checkpoint::CheckpointPrefetch* held = nullptr;  ///< what was read of it already, and is let go of then
    double verify_seconds = 0;                       ///< that were waited for its verification, for the record
  };
  /// Goes on from a checkpoint folder: fills model, optimizer, schedule, callbacks, counters and RNG.
  void restore(const std::string& checkpoint, const Found& found);

  /// Saves the state after the present step, once a step unless note_best() or note_change() was called since.
  /// `eval_metrics`: what an evaluation at this very step found, by `DATA_SET/METRIC`. Where there are several
  /// processes a collective, and the first one writes. RunError when the disk refuses; what was saved before is still
  /// whole.
  void save(const std::map<std::string, double>& eval_metrics, When when = When::kBetweenSteps);
  /// Where memory has run out: gives back that of the copies, after what is under way; from now on training waits for
  /// each save. False when there was none.
  bool give_up_copies();
  /// Takes note of a save that has come to its end meanwhile. Once a step.
  void poll();
  /// Waits until nothing is under way.
  void finish();

  /// How long it would take by now to end what is under way and to save once more, going by the longest save so far.
  double seconds_to_end() const;

  /// Whether `checkpoint.save_steps` has elapsed between two points.
  bool due(const Progress& before, const Progress& now) const;
  /// Looks at the monitored metric after an evaluation; true when it is the best so far.
  bool note_best(const std::map<std::string, double>& metrics, std::int64_t step);
  /// The state is not what was saved at this step.
  void note_change() { saved_step_ = -1; }

  const sections::checkpoint::Config& config() const { return config_; }
  const std::string& last_checkpoint() const { return last_checkpoint_; }  ///< "" when none was written or loaded
  const std::optional<double>& best_value() const { return best_value_; }
  std::int64_t best_step() const { return best_step_; }

 private:
  /// What the thread reports when it is done.
  struct Saved {
    std::string path;
    double seconds = 0, stall_seconds = 0, rest_seconds = 0;  ///< the rests are part of the seconds
  };

  /// Whether this process saves on the disk of its host beside the first one, which saves on its own.
  bool saves_for_its_host() const;
  checkpoint::TrainState train_state() const;
  core::Node counters() const;
  std::unique_ptr<SaveTask> snapshot_state(const std::map<std::string, double>& eval_metrics, bool copy);
  bool copy_state(checkpoint::Snapshot& snapshot);
  void drop_copies();  ///< while nothing is under way
  void start(std::unique_ptr<SaveTask> task, std::int64_t begin_ns, bool copied);
  void note(const Saved& saved);
  void record(const SaveTask& task, const Saved& saved);
  bool copies_fit(std::int64_t bytes) const;
  std::shared_ptr<artifact::Throttle> pace_for(std::int64_t bytes) const;
  double seconds_since(std::int64_t begin_ns) const;

  Experiment& experiment_;
  Stepper& stepper_;
  core::Stateful& faults_;
  store::RunWriter& run_;
  Console& console_;
  const SignalWatch& signals_;
  const core::Clock& clock_;
  const sections::checkpoint::Config& config_;
  const std::string checkpoints_dir_;
  std::vector<std::pair<std::string, core::Stateful*>> more_state_;
  std::vector<std::unique_ptr<RankStates>> rank_states_;
  std::string last_checkpoint_;
  std::vector<std::string> random_states_;  // of all ranks, at the save that is being made
  std::optional<double> best_value_;
  std::int64_t best_step_ = 0, saved_step_ = -1, first_step_ = 0;

  double longest_save_s_ = 0;  // without rests
  SaveThrottle rhythm_;
  std::shared_ptr<artifact::Throttle> pace_;  // of the save that is under way; null when it does not rest
  bool async_ = false;
  bool writes_ = false;  // checkpoints: the first process, or the first of its host
  bool told_to_wait_ = false;
  artifact::AlignedBytes memory_;   // of the copies; the thread reads it while a save is under way
  std::int64_t counted_bytes_ = 0;  // of it, towards training.max_memory
  std::future<void> prefault_;
  std::atomic<bool> over_{false};  // nobody will ask for the result any more
  std::future<Saved> under_way_;
};

}  // namespace runner::train
