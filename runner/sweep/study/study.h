#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "components/sampler/sampler.h"
#include "runner/core/clock.h"
#include "runner/core/result.h"
#include "runner/store/run_reader.h"
#include "runner/sweep/study/study_store.h"

namespace runner::sweep {

using components::sampler::Point;

/// What a sweep was started with.
struct StudyInfo {
  std::string name;          ///< of its folder, and the first part of each trial's run_name
  std::string recipe_path;   ///< as the user gave it
  std::string recipe_dir;    ///< value of `${recipe_dir}`
  std::string recipe_json;   ///< with its `${...}` and the sweep
  std::int64_t threads = 0;  ///< of each trial's process; 0: the recipe's
  std::int64_t created_ms = 0;
  std::string store;          ///< `postgresql://HOST/DATABASE`; "": a file in the sweep's folder
  bool stand_in = false;      ///< the recipe only has the parameters of imported trials, and cannot be trained
  std::string unset_json;     ///< resolve::unset_values() of the recipe, as JSON; "" if an earlier version began it
  std::int64_t lease_ms = 0;  ///< with PostgreSQL a worker without a heartbeat for this long is dead
};

enum class TrialState { kWaiting, kRunning, kComplete, kPruned, kFailed };
std::string_view to_text(TrialState state);
/// Neither waiting nor running.
constexpr bool is_finished(TrialState state) { return state != TrialState::kWaiting && state != TrialState::kRunning; }

/// What a trial has trained itself, without its parent checkpoint; in all of its runs, if it restarted.
struct Spent {
  std::int64_t steps = 0, samples = 0, tokens = 0;

  Spent operator+(const Spent& other) const {
    return {steps + other.steps, samples + other.samples, tokens + other.tokens};
  }
};

/// One training of one variant.
struct Trial {
  std::int64_t number = 0, variant = 0, replicate = 0;
  TrialState state = TrialState::kWaiting;
  std::optional<double> value;      ///< of the metric, or the first objective, with its own sign
  std::vector<double> others = {};  ///< of the further objectives; empty while `value` is
  std::int64_t step = 0;            ///< at which it was measured
  std::string run;                  ///< id of the run that was judged last; "" before
  std::string reason;               ///< why it failed, or was started again
  std::int64_t retries = 0;         ///< that failures have cost
  bool shrink = false;
  std::int64_t promoted = 0;  ///< step at which it had been pruned before it resumed; 0: never
  Spent spent;
  std::int64_t started_ms = 0, ended_ms = 0;
  std::int64_t worker = 0;   ///< the latest worker
  std::int64_t claims = 0;   ///< number of times it was given to a worker, or taken away
  std::int64_t changed = 0;  ///< number of the transaction that wrote this
};

struct Variant {
  std::int64_t number = 0;
  Point point;
  std::string text;          ///< `optimizer.lr=0.001 model.n_layer=4`
  std::int64_t parent = -1;  ///< the variant with the checkpoint that it resumes from; -1: none
  std::int64_t until = 0;    ///< the step to which it trains; 0: to the recipe's end
};

/// The result of one process of a trial.
struct TrialEnd {
  TrialState state = TrialState::kComplete;  ///< kWaiting: to be restarted
  std::optional<double> value;
  std::vector<double> others = {};
  std::int64_t step = 0;
  std::string run, reason;
  bool costs_retry = false, shrink = false;
  std::optional<Spent> spent = {};        ///< by its run, since that began; nothing: as it was
  bool starts_new_run = false;            ///< it continues in another run, so this one's cost is added
  std::vector<store::SeriesPoint> curve;  ///< the metric as reported
};

/// The variants and trials of one sweep, their results, and its workers: in `sweep.db`, or in PostgreSQL for workers on
/// several machines. Several processes may have it open; each call is one transaction. Everything but curves is cached:
/// a call reads only changes.
class Study {
 public:
  /// `folder` must exist. For a study in PostgreSQL it holds what this machine's workers need, and the address of the
  /// study.
  static core::Result<std::unique_ptr<Study>> create(const std::string& folder, const StudyInfo& info,
                                                     const core::Clock& clock = core::system_clock());
  static core::Result<std::unique_ptr<Study>> open(const std::string& folder,
                                                   const core::Clock& clock = core::system_clock());

  const std::string& folder() const { return folder_; }
  const StudyInfo& info() const { return info_; }
  /// Replaces the recipe by one with the same trials, and its `worker_timeout`, which applies from each worker's next
  /// heartbeat.
  void set_recipe(const std::string& recipe_json, std::int64_t lease_ms);

  /// The present ones, by number. The lists last as long as the study; their entries, until the next call.
  const std::vector<Variant>& variants();
  const std::vector<Trial>& trials();
  /// The same, but trials of dead workers are waiting: for read-only use.
  std::vector<Trial> trials_snapshot();
  std::vector<store::SeriesPoint> curve(std::int64_t trial);
  /// Numbers of changed variants, in the order of discovery. It only grows: a caller that keeps its length knows what
  /// is new.
  const std::vector<std::int64_t>& changes() const { return changes_; }

  /// The common clock of all workers.
  std::int64_t now_ms() { return store_->now_ms(); }
  /// Registers this process as a worker and returns its number.
  std::int64_t add_worker(std::int64_t now_ms);
  /// Call every heartbeat_ms(); false when the others have taken this worker for dead, and its trials.
  bool heartbeat();
  std::int64_t heartbeat_ms() const;
  void unregister_worker() { store_->unregister_worker(worker_); }
  /// The machine of a worker.
  std::string host_of(std::int64_t worker);
  /// Records that it is still at work.
  void mark_worker_active(std::int64_t worker, std::int64_t now_ms);
  /// Total time with at least one active worker. `worker` counts as active up to `now_ms`.
  std::int64_t worked_ms(std::int64_t worker = 0, std::int64_t now_ms = 0);
  /// The limit reached, after which no further trial starts; "" before.
  std::string end_reason();
  void set_end_reason(const std::string& reason);
  /// Puts unfinished trials of a worker back to waiting.
  void requeue_trials();
  /// Numbers of the running trials of all workers, as of this call.
  std::set<std::int64_t> running();
  /// Whether there is any worker. With PostgreSQL a killed one counts until its lease expires.
  bool has_workers();
  /// What to do when the store does not respond; without it the call fails.
  void set_outage_handler(StudyStore::OutageHandler handler) { store_->set_outage_handler(std::move(handler)); }

  struct Demand {
    std::int64_t now_ms = 0;
    std::int64_t variants_max = 0, replicates = 1;
    /// The next variant, given all before it; nothing when there is none. Called again if another worker was faster.
    std::function<std::optional<Variant>(const std::vector<Variant>&, const std::vector<Trial>&)> propose;
    /// A pruned trial to resume after all; nothing if there is none.
    std::function<std::optional<std::int64_t>()> promote;
  };
  /// Claims the next trial for this worker: a waiting one, else a promoted one, else the first of a new variant.
  /// Nothing when nothing is left to do.
  std::optional<Trial> claim(const Demand& demand);
  /// False when the trial was given to another worker meanwhile: then nothing is written.
  bool end(std::int64_t trial, const TrialEnd& end, std::int64_t now_ms);
  /// Forces commits to disk; before this a power cut may lose them, but not a kill.
  void sync() { store_->sync(); }

 private:
  Study(std::string folder, std::unique_ptr<StudyStore> store);
  void read_info();
  void read_lease();
  void refresh();
  void add(Trial trial);
  void write(const std::function<bool()>& work);
  void set_info(const std::string& key, const std::string& value);
  std::int64_t number_change();
  bool add_variant(const Variant& variant, std::int64_t replicates, std::int64_t change);
  bool promote(std::int64_t trial, std::int64_t change);
  std::optional<std::int64_t> forgotten() const;
  /// Nothing when it went to another worker before it was seen here.
  std::optional<Trial> assign(std::int64_t trial);

  std::string folder_;
  std::unique_ptr<StudyStore> store_;
  StudyInfo info_;
  std::int64_t worker_ = 0;
  std::map<std::int64_t, std::int64_t> held_;  ///< trials that this worker was given, and their claims
  std::int64_t seen_ = 0;                      ///< number of the newest transaction that was read
  std::vector<Variant> variants_;
  std::vector<Trial> trials_;
  std::vector<std::int64_t> changes_;
  std::set<std::int64_t> waiting_, running_;
};

/// Whether a study exists.
bool is_study(const std::string& folder);
/// Makes `folder`, if needed, for workers of a study in PostgreSQL.
core::Result<void> link_study(const std::string& folder, const std::string& store, const std::string& name);

}  // namespace runner::sweep
