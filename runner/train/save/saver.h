#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/callback/callback.h"
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

/// The checkpoints of one training: what goes into them, which is the best, and which may be deleted.
///
/// A save copies the state (`checkpoint.async_save`) or writes it, and returns; a thread finishes writing, verifying,
/// committing and rotating. After a copy the thread is throttled as far as the time to the next save allows, so that
/// training keeps its speed. At most one save is under way: the next one waits for it, and a save that is waited for is
/// not throttled. An error on the thread is thrown by the next call here.
class Saver {
 public:
  enum class When {
    kBetweenSteps,
    kAtTheEnd,  ///< nothing follows that could run meanwhile
  };

  Saver(Experiment& experiment, Stepper& stepper, core::Stateful& bad_step_policy, store::RunWriter& run,
        Console& console, const SignalWatch& signals, const core::Clock& clock);
  /// Waits for a save under way; one that waits for room on the disk gives up.
  ~Saver();

  /// Registers another stateful part of the training under its own name; call before restore() and save().
  void add_state(const std::string& name, core::Stateful& part) { more_state_.emplace_back(name, &part); }

  /// The same for a part with a state per rank.
  void add_rank_state(const std::string& name, core::Stateful& part);

  /// Called with each checkpoint that is whole on the disk, by the thread of the training and on processes that save.
  void tell_saves(std::function<void(const components::callback::SavedCheckpoint&)> listener) {
    tell_save_ = std::move(listener);
  }

  /// Call before the first step: tests the folder (RunError when it would refuse a checkpoint) and allocates the memory
  /// for copies.
  void prepare();
  /// How a checkpoint was chosen to resume from.
  struct Found {
    checkpoint::CheckpointPrefetch* prefetched = nullptr;  ///< the prefetched part, released on return
    double verify_seconds = 0;  ///< seconds spent waiting for its verification, for the record
  };
  /// Restores a checkpoint folder: fills model, optimizer, schedule, callbacks, counters and RNG.
  void restore(const std::string& checkpoint, const Found& found);

  /// Saves the state after the current step, once per step unless note_best() or note_change() was called since.
  /// `eval_metrics`: results of an evaluation at this very step, by `DATA_SET/METRIC`. With several processes a
  /// collective, and rank 0 writes. RunError on disk errors; what was saved before is still whole.
  void save(const std::map<std::string, double>& eval_metrics, When when = When::kBetweenSteps);
  /// Call when out of memory: frees the copies after the save under way; from now on saves are synchronous. False when
  /// there were none.
  bool switch_to_sync_saves();
  /// Processes a save that finished meanwhile. Call once per step.
  void poll();
  /// Waits until nothing is under way.
  void finish();

  /// Estimated time to finish the save under way and to save once more, from the longest save so far.
  double seconds_to_end() const;

  /// Whether `checkpoint.save_steps` elapsed between two points.
  bool due(const Progress& before, const Progress& now) const;
  /// Checks the monitored metric after an evaluation; true when it is the best so far.
  bool note_best(const std::map<std::string, double>& metrics, std::int64_t step);
  /// The state differs from what was saved at this step.
  void note_change() { saved_step_ = -1; }

  const sections::checkpoint::Config& config() const { return config_; }
  const std::string& last_checkpoint() const { return last_checkpoint_; }  ///< "" when none was written or loaded
  /// Of the monitored metric; the best first, at most `keep_best`.
  struct Best {
    double value = 0;
    std::int64_t step = 0;
  };
  const std::vector<Best>& bests() const { return bests_; }

 private:
  /// The thread's report when done.
  struct Saved {
    components::callback::SavedCheckpoint checkpoint;  ///< without a path where another process has committed it
    double seconds = 0, stall_seconds = 0, paused_seconds = 0;  ///< the seconds include pauses
    bool waited_for_room = false;                               ///< on a full disk
  };

  /// Whether the processes write their parts of a checkpoint into one folder. A collective.
  bool agree_to_save_jointly();
  /// Of the parameters, what this process saves then.
  double saved_share() const;
  /// Whether this process saves on its host's disk in addition to rank 0, which saves on its own.
  bool saves_for_its_host() const;
  checkpoint::TrainState train_state() const;
  core::Node counters() const;
  bool earlier_ones_are_gone();
  std::unique_ptr<SaveTask> snapshot_state(const std::map<std::string, double>& eval_metrics, bool copy);
  bool copy_state(checkpoint::Snapshot& snapshot);
  void drop_copies();  ///< while nothing is under way
  void start(std::unique_ptr<SaveTask> task, components::callback::SavedCheckpoint checkpoint, std::int64_t begin_ns,
             bool copied);
  void note(const Saved& saved);
  void record(const SaveTask& task, const Saved& saved);
  bool copies_fit(std::int64_t bytes) const;
  std::shared_ptr<artifact::Throttle> make_throttle(std::int64_t bytes) const;
  double seconds_since(std::int64_t begin_ns) const;

  Experiment& experiment_;
  Stepper& stepper_;
  core::Stateful& bad_step_policy_;
  store::RunWriter& run_;
  Console& console_;
  const SignalWatch& signals_;
  const core::Clock& clock_;
  const sections::checkpoint::Config& config_;
  const std::string checkpoints_dir_;
  std::vector<std::pair<std::string, core::Stateful*>> more_state_;
  std::vector<std::unique_ptr<RankStates>> rank_states_;
  std::function<void(const components::callback::SavedCheckpoint&)> tell_save_;
  std::string last_checkpoint_;
  std::vector<std::string> random_states_;  // of all ranks, for the current save
  std::vector<Best> bests_;
  std::int64_t saved_step_ = -1, first_step_ = 0;

  double longest_save_s_ = 0;  // without pauses
  SaveThrottle save_throttle_;
  std::shared_ptr<artifact::Throttle> throttle_;  // of the save under way; null when not throttled
  bool async_ = false;
  bool writes_ = false;    // whether this process writes checkpoints: rank 0, the first of its host, or each its part
  bool is_joint_ = false;  // each its part
  std::int64_t joint_saves_ = 0;         // so far
  std::vector<std::int64_t> processes_;  // of a joint save, by rank; 0: on another machine
  std::int64_t first_process_ = 0;       // of a joint save, by its system's number
  bool told_to_wait_ = false;
  bool was_full_ = false;           // the disk, at the save before
  artifact::AlignedBytes memory_;   // memory of the copies; read by the thread while a save is under way
  std::int64_t counted_bytes_ = 0;  // counted towards training.max_memory
  std::future<void> prefault_;
  std::atomic<bool> abandoned_{false};  // the result is no longer needed
  std::future<Saved> under_way_;
};

}  // namespace runner::train
