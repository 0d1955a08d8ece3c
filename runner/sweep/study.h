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
#include "runner/core/result.h"
#include "runner/store/run_reader.h"
#include "runner/store/sqlite.h"

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
};

enum class TrialState { kWaiting, kRunning, kComplete, kPruned, kFailed };
std::string_view to_text(TrialState state);

/// What a trial has trained itself, without what it went on from.
struct Spent {
  std::int64_t steps = 0, samples = 0, tokens = 0;
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
  Spent spent;
  std::vector<store::SeriesPoint> curve;  ///< the metric, as it was reported on the way
};

/// `sweep.db`: the variants and trials of one sweep, what became of them, and who works on them. Several processes may
/// have it open; each call is one transaction. What was read stays in memory: a call reads what has changed since.
class Study {
 public:
  static core::Result<std::unique_ptr<Study>> create(const std::string& folder, const StudyInfo& info);
  static core::Result<std::unique_ptr<Study>> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const StudyInfo& info() const { return info_; }
  /// Replaces the recipe by one whose trials are the same.
  void set_recipe(const std::string& recipe_json);

  /// As they are at this moment, by number. The lists last as long as the study; their entries, until the next call.
  const std::vector<Variant>& variants();
  const std::vector<Trial>& trials();
  /// Of a trial as it was when trials were read last.
  const std::vector<store::SeriesPoint>& curve(std::int64_t trial);
  /// Numbers of variants that were found changed, in the order of the findings. It only grows: who knows how long it
  /// was knows what is new.
  const std::vector<std::int64_t>& changes() const { return changes_; }

  /// Signs a worker in; its number names the folder that holds its lease.
  std::int64_t add_worker(std::int64_t now_ms);
  /// Writes down that it is still at work.
  void see_worker(std::int64_t worker, std::int64_t now_ms);
  /// For how long there was at least one worker at work.
  std::int64_t worked_ms();
  /// Why no further trial is begun, once that is so: a limit that was reached. "" before.
  std::string end_reason();
  void set_end_reason(const std::string& reason);
  /// Trials that a worker left in the middle wait again. `is_alive` is asked of each worker that has some.
  void take_back(const std::function<bool(std::int64_t worker)>& is_alive);

  struct Demand {
    std::int64_t worker = 0, now_ms = 0;
    std::int64_t variants_max = 0, replicates = 1;
    /// The next variant, given all before it; nothing when there is none. Asked again where another worker was faster.
    std::function<std::optional<Variant>(const std::vector<Variant>&, const std::vector<Trial>&)> propose;
    /// A trial that was given up and goes on after all; nothing where there is none.
    std::function<std::optional<std::int64_t>()> promote;
  };
  /// The next trial, which is this worker's from now on: one that waits, else one that is promoted, else the first of
  /// a new variant. Nothing when
  /// there is no more to do.
  std::optional<Trial> claim(const Demand& demand);
  void end(std::int64_t trial, const TrialEnd& end, std::int64_t now_ms);
  /// What was committed is on the disk itself when this returns; before, a power cut may take it back, but no kill.
  void sync();

 private:
  Study(std::string folder, store::Database database);
  void read_info();
  void refresh();
  void take_in(Trial trial);
  std::int64_t next_change();
  bool add_variant(const Variant& variant, std::int64_t replicates, std::int64_t change);
  bool promote(std::int64_t trial, std::int64_t change);

  struct KeptCurve {
    std::int64_t changed = 0;  ///< of the trial, when it was read
    std::vector<store::SeriesPoint> points;
  };

  std::string folder_;
  store::Database database_;
  StudyInfo info_;
  std::int64_t seen_ = 0;  ///< number of the newest transaction that was read
  std::vector<Variant> variants_;
  std::vector<Trial> trials_;
  std::vector<std::int64_t> changes_;
  std::set<std::int64_t> waiting_, running_;
  std::map<std::int64_t, KeptCurve> curves_;
};

std::string study_db_path(const std::string& folder);

}  // namespace runner::sweep
