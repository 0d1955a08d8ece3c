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

/// What a sweep was begun with.
struct StudyInfo {
  std::string name;          ///< of its folder, and the first part of each trial's run_name
  std::string recipe_path;   ///< as the user gave it
  std::string recipe_dir;    ///< what `${recipe_dir}` stands for
  std::string recipe_json;   ///< with its `${...}` and the sweep
  std::int64_t threads = 0;  ///< of each trial's process; 0: as the recipe says
  std::int64_t created_ms = 0;
  std::string store;  ///< `postgresql://HOST/DATABASE`; "": a file in the sweep's folder
  bool stand_in =
      false;  ///< the recipe only has the parameters of trials that another program made, and trains nothing
  std::int64_t lease_ms = 0;  ///< a worker that PostgreSQL has not heard of for so long is dead
};

enum class TrialState { kWaiting, kRunning, kComplete, kPruned, kFailed };
std::string_view to_text(TrialState state);

/// What a trial has trained itself, without what it went on from; in all of its runs, where it was begun anew.
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
  std::int64_t promoted = 0;  ///< step at which it had been given up before it went on; 0: never
  Spent spent;
  std::int64_t started_ms = 0, ended_ms = 0;
  std::int64_t worker = 0;   ///< that it was given to last
  std::int64_t claims = 0;   ///< how often it was given to one, or taken away
  std::int64_t changed = 0;  ///< number of the transaction that wrote this
};

struct Variant {
  std::int64_t number = 0;
  Point point;
  std::string text;          ///< `optimizer.lr=0.001 model.n_layer=4`
  std::int64_t parent = -1;  ///< the variant whose checkpoint it goes on from; -1: none
  std::int64_t until = 0;    ///< the step to which it trains; 0: to the recipe's end
};

/// How a trial came out of one life of its process.
struct TrialEnd {
  TrialState state = TrialState::kComplete;  ///< kWaiting: it is to be started again
  std::optional<double> value;
  std::vector<double> others = {};
  std::int64_t step = 0;
  std::string run, reason;
  bool costs_retry = false, shrink = false;
  std::optional<Spent> spent = {};  ///< by its run, since that began; nothing: as it was
  bool begins_anew = false;         ///< its next life is another run, so that what this one has spent comes on top
  std::vector<store::SeriesPoint> curve;  ///< the metric, as it was reported on the way
};

/// The variants and trials of one sweep, what became of them, and who works on them: in `sweep.db`, or in PostgreSQL
/// for workers on several machines. Several processes may have it open; each call is one transaction. What was read
/// stays in memory, but for curves: a call reads what has changed since.
class Study {
 public:
  /// `folder` is there. Of a study in PostgreSQL it holds what this machine's workers need, and where the study is.
  static core::Result<std::unique_ptr<Study>> create(const std::string& folder, const StudyInfo& info,
                                                     const core::Clock& clock = core::system_clock());
  static core::Result<std::unique_ptr<Study>> open(const std::string& folder,
                                                   const core::Clock& clock = core::system_clock());

  const std::string& folder() const { return folder_; }
  const StudyInfo& info() const { return info_; }
  /// Replaces the recipe by one whose trials are the same, and what its `worker_timeout` says, which all workers obey
  /// from their next heartbeat.
  void set_recipe(const std::string& recipe_json, std::int64_t lease_ms);

  /// As they are at this moment, by number. The lists last as long as the study; their entries, until the next call.
  const std::vector<Variant>& variants();
  const std::vector<Trial>& trials();
  /// The same, where those wait whose worker has gone without a word: for whoever only looks.
  std::vector<Trial> trials_as_they_stand();
  std::vector<store::SeriesPoint> curve(std::int64_t trial);
  /// Numbers of variants that were found changed, in the order of the findings. It only grows: who knows how long it
  /// was knows what is new.
  const std::vector<std::int64_t>& changes() const { return changes_; }

  /// The time that counts for all workers.
  std::int64_t now_ms() { return store_->now_ms(); }
  /// Signs this process in as a worker, and gives its number.
  std::int64_t add_worker(std::int64_t now_ms);
  /// To be called as often as heartbeat_ms() says; false where the others have taken this worker for dead, and its
  /// trials.
  bool beat();
  std::int64_t heartbeat_ms() const;
  void leave() { store_->leave(worker_); }
  /// The machine of a worker.
  std::string host_of(std::int64_t worker);
  /// Writes down that it is still at work.
  void see_worker(std::int64_t worker, std::int64_t now_ms);
  /// For how long there was at least one worker at work. `worker` is so up to `now_ms`, whenever it was written down.
  std::int64_t worked_ms(std::int64_t worker = 0, std::int64_t now_ms = 0);
  /// Why no further trial is begun, once that is so: a limit that was reached. "" before.
  std::string end_reason();
  void set_end_reason(const std::string& reason);
  /// Trials that a worker left in the middle wait again.
  void take_back();
  /// Numbers of the trials that run, wherever: as of this call, while who walks through them asks for more.
  std::set<std::int64_t> running();
  /// Whether there is a worker, wherever. One that PostgreSQL keeps in mind and that was killed counts until its lease
  /// is over.
  bool has_workers();
  /// What to do where the store does not answer; without it the call fails.
  void set_patience(StudyStore::Patience patience) { store_->set_patience(std::move(patience)); }

  struct Demand {
    std::int64_t now_ms = 0;
    std::int64_t variants_max = 0, replicates = 1;
    /// The next variant, given all before it; nothing when there is none. Asked again where another worker was faster.
    std::function<std::optional<Variant>(const std::vector<Variant>&, const std::vector<Trial>&)> propose;
    /// A trial that was given up and goes on after all; nothing where there is none.
    std::function<std::optional<std::int64_t>()> promote;
  };
  /// The next trial, which is this worker's from now on: one that waits, else one that is promoted, else the first of
  /// a new variant. Nothing when there is no more to do.
  std::optional<Trial> claim(const Demand& demand);
  /// False where the trial was given to another worker meanwhile: then nothing is written.
  bool end(std::int64_t trial, const TrialEnd& end, std::int64_t now_ms);
  /// What was committed is on the disk itself when this returns; before, a power cut may take it back, but no kill.
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
  /// Nothing where it went to somebody else before it was seen here.
  std::optional<Trial> hand_out(std::int64_t trial);

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

/// Whether a study is there.
bool is_study(const std::string& folder);
/// Makes `folder`, if need be, for workers of a study that PostgreSQL keeps.
core::Result<void> point_at_study(const std::string& folder, const std::string& store, const std::string& name);

}  // namespace runner::sweep
