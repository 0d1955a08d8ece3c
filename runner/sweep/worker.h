#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/launch/signals.h"
#include "runner/sweep/analysis/regret.h"
#include "runner/sweep/pruning.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/observation_list.h"
#include "runner/sweep/study/outcome.h"
#include "runner/sweep/study/study.h"
#include "runner/sweep/study/study_counters.h"
#include "runner/sweep/study/trial_runs.h"
#include "runner/sweep/trial/crash_note.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::sweep {

/// Claims and trains trials of a study, as many at once as the recipe says, until there are no more, it is stopped, or
/// a failure ends it by policy. Several workers may share a study. A signal makes the running trials save and return to
/// the study; a second one kills them. While the study does not respond the trials continue, and the worker waits.
class Worker {
 public:
  struct Options {
    std::unique_ptr<Trainings> trainings;
    std::shared_ptr<store::InMemoryRun> light;         ///< for trainings in this process; else null
    bool reads_recipes = true;                         ///< trainings read a file; else they use the worker's recipe
    std::function<void(const std::string& line)> say;  ///< progress messages
    std::function<void(const std::string& line)> warn;
    std::function<void()> look = [] {};  ///< called periodically while trials run
    std::int64_t concurrent = 0;         ///< trials at once; 0: the recipe's
    bool waits_for_others = true;        ///< stay while trials of other workers run, to take over if they die
  };
  struct End {
    bool stopped = false;  ///< by a signal: more is left to do
    std::string failure;   ///< why the sweep was stopped; "" otherwise
    std::string limit;     ///< of `sweep.stop` that was reached; "" otherwise
  };

  Worker(const Sweep& sweep, Study& study, Options options, const core::Clock& clock);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Blocks until the end. RunError on errors of the study or the disk.
  End run();

 private:
  struct Running {
    Trial trial;
    std::string run_dir;
    std::optional<store::SeriesPoint> pruned_at = {};
    std::int64_t step = -1;         ///< the last that was seen on record
    std::int64_t step_seen_ns = 0;  ///< when it was new
    bool hangs = false;             ///< killed for that
  };
  bool may_start() const;
  bool has_more_to_come() const;
  bool start_next();
  bool start(Trial trial);
  std::optional<store::RunSummary> newest_run_of(const Trial& trial) const;
  void put_back(const Trial& trial);
  void defer(const Trial& trial, const std::string& why);
  struct Beginning {
    Training training;
    std::string run_dir;
  };
  /// How a trial is to be trained; `interrupted` is its run where there is one that may go on. Failure: the variant is
  /// refused, or where `failure_` says so this worker cannot train it.
  core::Result<Beginning> begin(const Trial& trial, const std::string& run_name, const store::RunSummary* interrupted);
  std::int64_t first_step_of(const Trial& trial);
  void wait_for_something();
  void on_signal(int signal);
  LiveCurves live_curves();
  std::optional<store::SeriesPoint> pruned_at(std::int64_t trial, const store::RunRecord& run);
  void prune();
  void look_at_limits();
  void look_for_hangs();
  void look_at_trainings();
  void conclude(const Trial& trial, const std::optional<store::RunRecord>& run, const Outcome& outcome);
  void give_up(const Trial& trial, const store::RunRecord& run, const store::SeriesPoint& at);
  void write_down(const Trial& trial, const TrialEnd& end);
  TrialEnd end_of(const Trial& trial, const Outcome& outcome);
  TrialEnd failed(const Trial& trial, const Outcome& outcome, std::string_view policy);
  void tell(const Trial& trial, const TrialEnd& end);
  void heartbeat();
  void sync();
  bool wait_for_study(const StudyStore::Outage& outage);

  const Sweep& sweep_;
  Study& study_;
  ObservationList observations_;
  RegretMonitor regret_;
  Pruning pruning_;
  StudyCounters counters_;
  Options options_;
  const core::Clock& clock_;
  std::string output_dir_;
  TrialRuns runs_;                       ///< of other workers' trials
  std::optional<CrashNote> crash_note_;  ///< where trainings can take this process along
  std::int64_t id_ = 0;
  std::int64_t heartbeat_ns_ = 0, looks_again_ns_ = 0, pruned_ns_ = 0;
  std::int64_t pause_ms_ = 0;       ///< after a trial for which there was no process
  std::int64_t away_since_ns_ = 0;  ///< the study
  std::int64_t synced_ns_ = 0;
  bool has_news_ = false;  ///< something ended since then
  launch::Signals signals_;
  std::list<Running> running_;
  int signals_heard_ = 0;
  bool leaves_at_once_ = false;
  bool has_left_ = false;  ///< the study, in good order
  bool complete_ = false;  ///< the study has no more trials
  bool waits_ = false;     ///< the next variant depends on running trials
  std::string failure_, limit_, put_off_for_;
  std::set<std::int64_t> spared_;  ///< trials whose checkpoints were removed
  struct PrunedTrial {
    std::string run_dir;
    std::int64_t claims = 0;
  };
  std::map<std::int64_t, PrunedTrial> pruned_;  ///< trials that this worker pruned, which may be promoted
};

}  // namespace runner::sweep
