#include "runner/sweep/worker.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/units.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/text.h"
#include "runner/store/database/unsynced_file.h"
#include "runner/store/run_files.h"
#include "runner/sweep/limits.h"
#include "runner/sweep/next_variant.h"
#include "runner/sweep/studies.h"
#include "runner/sweep/study/variant_summary.h"
#include "runner/sweep/trial/lineage.h"
#include "runner/sweep/trial/spare_checkpoints.h"

namespace runner::sweep {
namespace {

constexpr int kTick_ms = 500;
constexpr std::int64_t kPruneMs = 250;       // how often trials that run are judged, though many end meanwhile
constexpr std::int64_t kLookAgainMs = 1000;  // for trials, where there were none
// Between attempts to start a process where the machine has none to give: what it lacks, others may give back.
constexpr std::int64_t kFirstPauseMs = 1000, kLongestPauseMs = 16'000;
constexpr std::int64_t kTimedMs = 1000;         // how exactly stop.max_time is kept
constexpr std::int64_t kAwayMsMax = 3'600'000;  // of a study that does not answer
constexpr std::int64_t kSyncMs = 500;           // what a power cut may take back, as of a run

using sections::sweep::to_text;

/// Whether there is something to resume; not if it was killed in its first moments.
bool has_something(const store::RunSummary& run) {
  std::error_code ignored;
  return run.status != store::RunStatus::kUnreadable && !store::branch_file(run.run_dir, "resolved.json").empty() &&
         std::filesystem::exists(store::run_db_path(run.run_dir), ignored);
}

/// Where a recipe counts in epochs or tokens, only the run tells which step was its last: there it is complete.
bool is_last_step(const store::RunSummary& run, const std::optional<store::SeriesPoint>& at) {
  return at && run.status == store::RunStatus::kFinished && at->step >= run.step;
}

}  // namespace

Worker::Worker(const Sweep& sweep, Study& study, Options options, const core::Clock& clock)
    : sweep_(sweep),
      study_(study),
      observations_(sweep),
      regret_(sweep),
      pruning_(sweep, study),
      counters_(sweep),
      options_(std::move(options)),
      clock_(clock),
      output_dir_(output_dir_of(sweep, study)),
      runs_(study, output_dir_, clock) {
  if (options_.concurrent == 0) options_.concurrent = sweep_.config().max_concurrent_trials;
  if (sweep_.config().isolation == sections::sweep::Isolation::kNone) {
    crash_note_.emplace(study_.folder(), "a trial with isolation: none ended this worker: roux sweep resume " +
                                             study_.info().name + " continues, by sweep.failures");
  }
  study_.set_outage_handler([this](const StudyStore::Outage& outage) { return wait_for_study(outage); });
  id_ = study_.add_worker(study_.now_ms());
  heartbeat_ns_ = clock_.monotonic_ns();
}

Worker::~Worker() {
  study_.set_outage_handler({});
  if (has_left_) return;
  // During an error: releases its trials to the others, without waiting for the lease to expire.
  options_.trainings.reset();
  const auto left = core::attempt([this] { study_.unregister_worker(); });
  static_cast<void>(left);  // without that the lease expires
}

Worker::End Worker::run() {
  for (;;) {
    look_at_limits();
    while (may_start() && start_next()) look_at_limits();
    if (running_.empty() && !has_more_to_come()) break;
    options_.look();
    wait_for_something();
    if (sweep_.pruner() != nullptr && clock_.monotonic_ns() - pruned_ns_ >= kPruneMs * 1'000'000) prune();
    if (sweep_.config().failures.hang_timeout) look_for_hangs();
    look_at_trainings();
    if (has_news_ && clock_.monotonic_ns() - synced_ns_ > kSyncMs * 1'000'000) sync();
    heartbeat();
  }
  study_.mark_worker_active(id_, study_.now_ms());
  const bool over = complete_ || is_finished(sweep_, study_);
  // A sweep ended by a limit may resume with other limits, from any of its trials.
  const bool for_good = over && study_.end_reason().empty() && is_finished(sweep_, study_);
  if (over) remove_spare_checkpoints(sweep_, study_, counters_.update(study_), output_dir_, for_good, spared_);
  if (has_news_) sync();
  study_.unregister_worker();
  has_left_ = true;
  return {signals_heard_ > 0 && !over, failure_, limit_};
}

bool Worker::may_start() const {
  return signals_heard_ == 0 && failure_.empty() && limit_.empty() && !complete_ &&
         clock_.monotonic_ns() >= looks_again_ns_ && static_cast<std::int64_t>(running_.size()) < options_.concurrent;
}

/// Trials of other workers run, which may come to wait again, or make room for what comes next; or one waits until
/// there is a process for it.
bool Worker::has_more_to_come() const {
  return signals_heard_ == 0 && failure_.empty() && limit_.empty() && !complete_ &&
         (options_.waits_for_others || pause_ms_ > 0);
}

/// False when there was nothing to start.
bool Worker::start_next() {
  study_.requeue_trials();
  Study::Demand demand;
  demand.now_ms = study_.now_ms();
  demand.variants_max = sweep_.config().n_trials.value_or(std::numeric_limits<std::int64_t>::max());
  demand.replicates = sweep_.config().replicates;
  demand.propose = [this](const std::vector<Variant>& variants,
                          const std::vector<Trial>& trials) -> std::optional<Variant> {
    const auto& observations = observations_.update(study_.changes(), variants, trials);
    waits_ = next_variant_waits(sweep_, observations);
    return waits_ ? std::nullopt : next_variant(sweep_, observations);
  };
  demand.promote = [this] { return pruning_.promoted(); };
  waits_ = false;
  auto trial = study_.claim(demand);
  complete_ = !trial && !waits_ && study_.running().empty();
  if (trial && trial->promoted > 0) {
    options_.say("trial " + std::to_string(trial->number) + " resumes from step " + std::to_string(trial->promoted) +
                 ": it is among the best after all");
  }
  if (!trial) {
    pause_ms_ = 0;
  } else if (start(*std::move(trial))) {
    return true;
  }
  looks_again_ns_ = clock_.monotonic_ns() + std::max(kLookAgainMs, pause_ms_) * 1'000'000;
  return false;
}

/// False where it cannot be started yet.
bool Worker::start(Trial trial) {
  if (signals_heard_ > 0) return put_back(trial), false;  // while the study did not answer
  const std::string run_name = trial_run_name(study_, trial.number);
  const bool is_new = trial.claims == 1;  // it was never started
  const auto run = is_new ? std::nullopt : newest_run_of(trial);
  const bool unjudged = run && run->id != trial.run;
  // Of a run that has ended: its worker went before it could write down how the trial came out.
  const std::optional<int> status = unjudged ? status_of(*run) : std::nullopt;
  // It was taken from a worker, which counts as one claim, and given to this one.
  const auto crashed =
      is_new || status ? std::nullopt : CrashNote::status_of(study_.folder(), trial.number, trial.claims - 2);
  // A training dies with its worker, in a moment; the news that it lives travel slowly from another machine.
  if (unjudged && run->owner && !crashed) return put_back(trial), false;
  std::optional<store::RunRecord> left;
  if (unjudged) {
    left = read_trial_record(run->run_dir, sweep_.objectives(), clock_);
    const auto at = pruned_at(trial.number, *left);
    if (at && !is_last_step(left->run, at)) return give_up(trial, *left, *at), true;
  }
  if (const auto ended_with = status ? status : crashed) {
    return conclude(trial, left, classify(left, *ended_with, "", sweep_.objectives())), true;
  }
  auto beginning = begin(trial, run_name, unjudged ? &*run : nullptr);
  if (!beginning && !failure_.empty()) return put_back(trial), false;
  if (!beginning) {
    Outcome refused;
    refused.kind = Outcome::Kind::kRecipe;
    refused.reason = beginning.failure().message;
    return conclude(trial, std::nullopt, refused), true;
  }
  if (crash_note_) crash_note_->begin(trial.number, trial.claims);
  const auto started =
      core::attempt([&] { options_.trainings->start(trial.number, std::move(beginning.value().training)); });
  if (!started) return defer(trial, started.failure().message), false;
  running_.push_back(
      {.trial = std::move(trial), .run_dir = beginning.value().run_dir, .step_seen_ns = clock_.monotonic_ns()});
  return true;
}

/// For a trial that was started before. Skips the search through thousands of folders if this worker pruned it and no
/// other had it since.
std::optional<store::RunSummary> Worker::newest_run_of(const Trial& trial) const {
  const auto own = pruned_.find(trial.number);
  if (own != pruned_.end() && own->second.claims + 1 == trial.claims)
    return read_trial_run(own->second.run_dir, clock_);
  return find_trial_run(output_dir_, trial_run_name(study_, trial.number), clock_);
}

void Worker::put_back(const Trial& trial) {
  TrialEnd waits;
  waits.state = TrialState::kWaiting;
  waits.run = trial.run;
  waits.reason = trial.reason;
  waits.step = trial.step;
  study_.end(trial.number, waits, study_.now_ms());
}

/// The system has no process for it, which says nothing of the trial: it is tried again where others that end may have
/// left room, and given up only where nothing of ours runs.
void Worker::defer(const Trial& trial, const std::string& why) {
  if (crash_note_) crash_note_->end();
  put_back(trial);
  if (running_.empty() && pause_ms_ >= kLongestPauseMs) return void(failure_ = why);
  if (clock_.monotonic_ns() < looks_again_ns_) return;  // another one was just refused
  pause_ms_ = std::clamp(2 * pause_ms_, kFirstPauseMs, kLongestPauseMs);
  looks_again_ns_ = clock_.monotonic_ns() + pause_ms_ * 1'000'000;
  if (std::exchange(put_off_for_, why) != why) options_.warn(why + "; retrying");
}

/// An interrupted run resumes; any other starts, from scratch or from the checkpoint of another trial.
core::Result<Worker::Beginning> Worker::begin(const Trial& trial, const std::string& run_name,
                                              const store::RunSummary* interrupted) {
  auto recipe = trial_recipe(sweep_, study_, trial, run_name);
  if (!recipe) return recipe.failure();
  const std::int64_t parent = study_.variants().at(static_cast<std::size_t>(trial.variant)).parent;
  // Before its first save a run has no record of its parent checkpoint.
  const bool goes_on = interrupted != nullptr && has_something(*interrupted) &&
                       (parent < 0 || !artifact::list_checkpoints(interrupted->run_dir + "/checkpoints").empty());
  if (goes_on) return Beginning{{{"resume", interrupted->run_dir, "--quiet"}, "", nullptr}, interrupted->run_dir};
  const std::string id = store::new_run_id(study_.now_ms());
  Beginning beginning;
  beginning.run_dir = output_dir_ + "/" + run_name + "-" + id;
  beginning.training.run_id = id;
  const bool is_handed_over = parent < 0 && !options_.reads_recipes;
  const std::string path =
      is_handed_over ? beginning.run_dir + "/recipe.json" : trial_recipe_path(study_, trial.number);
  beginning.training.words = {"run", path, "--new", "--quiet", "--run-id", id, "--output-dir", output_dir_};
  std::string text = recipe.value().resolved_json();
  if (is_handed_over) {
    auto read = std::make_shared<resolve::Recipe>(std::move(recipe).value());
    read->path = path;
    read->sources = {std::make_shared<core::Source>(core::Source{path, std::move(text)})};
    beginning.training.recipe = std::move(read);
    return beginning;
  }
  core::make_folders(study_.folder() + "/trials").value();
  store::write_unsynced(path, text);
  if (parent < 0) return beginning;
  const Trial model = study_.trials().at(static_cast<std::size_t>(parent));  // of a population: one trial a variant
  const auto before = trial_recipe(sweep_, study_, model, trial_run_name(study_, parent));
  if (!before) return before.failure();
  const std::string model_dir = trial_run_dir(study_, output_dir_, model);
  if (!study_.info().store.empty() && !store::is_run_folder(model_dir)) {
    failure_ = "trial " + std::to_string(trial.number) + " resumes from a checkpoint of trial " +
               std::to_string(parent) + ", which was trained on " + study_.host_of(model.worker) + ", and " +
               model_dir + " is not on this machine: workers of a population need a shared output_dir";
    return core::Failure{failure_};
  }
  const auto checkpoint = checkpoint_at(model_dir, first_step_of(trial));
  if (!checkpoint) return checkpoint.failure();
  for (std::string& word : resume_arguments(checkpoint.value(), before.value(), recipe.value())) {
    beginning.training.words.push_back(std::move(word));
  }
  return beginning;
}

/// First step of its run: that of the checkpoint that it resumes from.
std::int64_t Worker::first_step_of(const Trial& trial) {
  const std::vector<Variant>& variants = study_.variants();
  const std::int64_t parent = variants.at(static_cast<std::size_t>(trial.variant)).parent;
  return parent < 0 ? 0 : variants.at(static_cast<std::size_t>(parent)).until;
}

void Worker::wait_for_something() {
  std::vector<pollfd> waiting = {{signals_.descriptor(), POLLIN, 0}};
  for (const int descriptor : options_.trainings->descriptors()) waiting.push_back({descriptor, POLLIN, 0});
  poll(waiting.data(), waiting.size(), kTick_ms);
  while (const std::optional<int> signal = signals_.next()) on_signal(*signal);
}

void Worker::on_signal(int signal) {
  const bool at_once = ++signals_heard_ > 1 && signal == SIGINT;
  leaves_at_once_ = leaves_at_once_ || at_once;
  if (signals_heard_ == 1 && !running_.empty()) {
    options_.say("saving the running trials; press Ctrl-C (SIGINT) again to kill them");
  }
  for (const Running& running : running_) options_.trainings->send(running.trial.number, at_once ? SIGKILL : SIGTERM);
}

void Worker::look_at_trainings() {
  for (const Trainings::End& end : options_.trainings->take_ended()) {
    if (crash_note_) crash_note_->end();
    const auto ended = std::find_if(running_.begin(), running_.end(),
                                    [&end](const Running& running) { return running.trial.number == end.trial; });
    if (!end.refusal.empty()) {
      const Trial trial = std::move(ended->trial);
      running_.erase(ended);
      defer(trial, end.refusal);
      continue;
    }
    pause_ms_ = 0;
    const auto run = read_trial_record(ended->run_dir, sweep_.objectives(), clock_, options_.light.get());
    // It may have run beyond the point at which it is pruned, or reported it just before its end.
    if (run && !ended->pruned_at) ended->pruned_at = pruned_at(ended->trial.number, *run);
    if (run && ended->pruned_at && !is_last_step(run->run, ended->pruned_at)) {
      give_up(ended->trial, *run, *ended->pruned_at);
    } else {
      Outcome outcome = classify(run, end.status, end.words, sweep_.objectives());
      if (ended->hangs && outcome.kind == Outcome::Kind::kCrash) {
        outcome.kind = Outcome::Kind::kHang;
        outcome.reason = "no progress for " + core::format_duration(*sweep_.config().failures.hang_timeout);
      }
      conclude(ended->trial, run, outcome);
    }
    running_.erase(ended);
    complete_ = false;  // it may have made room at a rung
    looks_again_ns_ = 0;
  }
}

void Worker::conclude(const Trial& trial, const std::optional<store::RunRecord>& run, const Outcome& outcome) {
  TrialEnd end = end_of(trial, outcome);
  end.value = outcome.value;
  end.others = outcome.others;
  end.step = outcome.step;
  end.curve = outcome.curve;
  end.reason = outcome.reason;
  // A running trial is still to be judged.
  const bool goes_on = outcome.kind == Outcome::Kind::kInterrupted || outcome.kind == Outcome::Kind::kCrash ||
                       outcome.kind == Outcome::Kind::kHang;
  end.run = run && !(goes_on && end.state == TrialState::kWaiting) ? run->run.id : trial.run;
  if (run) end.spent = spent_by(run->run, first_step_of(trial));
  end.starts_new_run = run && end.state == TrialState::kWaiting && !goes_on;
  write_down(trial, end);
}

void Worker::write_down(const Trial& trial, const TrialEnd& end) {
  has_news_ = true;
  if (study_.end(trial.number, end, study_.now_ms())) {
    tell(trial, end);
  } else {
    options_.warn("trial " + std::to_string(trial.number) +
                  " was reassigned to another worker because this one sent no heartbeat; its result here is discarded");
  }
  remove_spare_checkpoints(sweep_, study_, counters_.update(study_), output_dir_, false, spared_);
}

/// Of all trials that run, those of other workers too; none where no pruner looks at them.
LiveCurves Worker::live_curves() {
  LiveCurves curves;
  if (sweep_.pruner() == nullptr) return curves;
  const std::set<std::int64_t> running = study_.running();
  const std::vector<Trial>& trials = study_.trials();
  for (const std::int64_t number : running) {
    const auto own = std::find_if(running_.begin(), running_.end(),
                                  [number](const Running& running) { return running.trial.number == number; });
    const auto run = own != running_.end() ? read_trial_run(own->run_dir, clock_) : runs_.find(number);
    if (run && run->id != trials.at(static_cast<std::size_t>(number)).run)
      curves[number] = read_curve(run->run_dir, sweep_.metric());
  }
  return curves;
}

/// Where it is pruned by its own record and the present reports of all others.
std::optional<store::SeriesPoint> Worker::pruned_at(std::int64_t trial, const store::RunRecord& run) {
  const auto curve = run.curves.find(sweep_.metric());
  if (sweep_.pruner() == nullptr || curve == run.curves.end()) return std::nullopt;
  pruning_.see(live_curves());
  return pruning_.pruned_at(trial, curve->second);
}

void Worker::prune() {
  pruned_ns_ = clock_.monotonic_ns();
  const LiveCurves live = live_curves();
  pruning_.see(live);
  for (Running& running : running_) {
    if (running.pruned_at) continue;
    const auto curve = live.find(running.trial.number);
    if (curve == live.end()) continue;
    running.pruned_at = pruning_.pruned_at(running.trial.number, curve->second);
    // It saves, so that it can be resumed.
    if (running.pruned_at) options_.trainings->send(running.trial.number, SIGTERM);
  }
}

/// A recorded step distinguishes a slow trial from a hanging one.
void Worker::look_for_hangs() {
  const auto patience_ns = static_cast<std::int64_t>(*sweep_.config().failures.hang_timeout * 1e9);
  for (Running& running : running_) {
    const auto run = read_trial_run(running.run_dir, clock_);
    const std::int64_t now_ns = clock_.monotonic_ns();
    if (run && run->step != running.step) {
      running.step = run->step;
      running.step_seen_ns = now_ns;
    } else if (now_ns - running.step_seen_ns > patience_ns) {
      running.hangs = true;
      options_.trainings->send(running.trial.number, SIGKILL);  // what hangs may not on_signal anything weaker
    }
  }
}

void Worker::give_up(const Trial& trial, const store::RunRecord& run, const store::SeriesPoint& at) {
  TrialEnd end;
  end.state = TrialState::kPruned;
  end.run = run.run.id;
  end.step = at.step;
  end.reason = "pruned at step " + std::to_string(at.step);
  for (const store::SeriesPoint& point : run.curves.at(sweep_.metric())) {
    if (point.step <= at.step) end.curve.push_back(point);
  }
  end.value = value_of_pruned(end.curve, sweep_.objectives().front());
  end.spent = spent_by(run.run, first_step_of(trial));
  pruned_[trial.number] = {run.run.run_dir, trial.claims};
  write_down(trial, end);
}

/// Once a limit is reached no further trial starts, now or after a resume, unless the limits change.
void Worker::look_at_limits() {
  if (!limit_.empty() || !has_limits(sweep_)) return;
  limit_ = study_.end_reason();
  if (limit_.empty())
    limit_ = reached_limit(sweep_, study_, counters_.update(study_), study_.worked_ms(id_, study_.now_ms()), regret_);
  if (limit_.empty()) return;
  study_.set_end_reason(limit_);
  if (sweep_.config().stop.running == sections::sweep::Running::kFinish) return;
  for (const Running& running : running_) options_.trainings->send(running.trial.number, SIGTERM);
}

TrialEnd Worker::end_of(const Trial& trial, const Outcome& outcome) {
  const auto& policy = sweep_.config().failures;
  switch (outcome.kind) {
    case Outcome::Kind::kComplete: return {};
    case Outcome::Kind::kInterrupted: {
      TrialEnd waits;
      waits.state = TrialState::kWaiting;
      // Not requested: a full disk, a time limit. An immediate retry would spin.
      if (signals_heard_ == 0 && limit_.empty())
        failure_ = "trial " + std::to_string(trial.number) + " stopped by itself: " + outcome.reason;
      return waits;
    }
    case Outcome::Kind::kCrash:
      // Told to save before it could on_signal: by a person, or since a limit was reached.
      if (signals_heard_ > 0 || (!limit_.empty() && sweep_.config().stop.running == sections::sweep::Running::kSave)) {
        TrialEnd waits;
        waits.state = TrialState::kWaiting;
        return waits;
      }
      return failed(trial, outcome, to_text(policy.crash));
    case Outcome::Kind::kHang: return failed(trial, outcome, to_text(policy.hang));
    case Outcome::Kind::kNan: return failed(trial, outcome, to_text(policy.nan));
    case Outcome::Kind::kMemory: return failed(trial, outcome, to_text(policy.memory));
    case Outcome::Kind::kRecipe: return failed(trial, outcome, to_text(policy.invalid_recipe));
    case Outcome::Kind::kOther: break;
  }
  return failed(trial, outcome, to_text(policy.other));
}

TrialEnd Worker::failed(const Trial& trial, const Outcome& outcome, std::string_view policy) {
  TrialEnd end;
  end.state = TrialState::kFailed;
  const bool again = policy == "retry" || (policy == "shrink" && !trial.shrink);
  if (again && trial.retries < sweep_.config().failures.max_retries) {
    end.state = TrialState::kWaiting;
    end.costs_retry = true;
    end.shrink = policy == "shrink";
  }
  if (policy == "stop") failure_ = "trial " + std::to_string(trial.number) + " failed: " + outcome.reason;
  return end;
}

void Worker::tell(const Trial& trial, const TrialEnd& end) {
  const std::string name = "trial " + std::to_string(trial.number);
  if (end.state == TrialState::kWaiting && !end.costs_retry) return;
  if (end.state == TrialState::kWaiting) return options_.warn(name + " restarts: " + end.reason);
  if (end.state == TrialState::kFailed) return options_.warn(name + " failed: " + end.reason);
  options_.say(trial_line(sweep_, study_, counters_.update(study_), trial.number));
}

void Worker::sync() {
  study_.sync();
  synced_ns_ = clock_.monotonic_ns();
  has_news_ = false;
}

void Worker::heartbeat() {
  // A limit of time goes by what workers have written down.
  const std::int64_t interval_ms =
      sweep_.config().stop.max_time ? std::min(kTimedMs, study_.heartbeat_ms()) : study_.heartbeat_ms();
  if (clock_.monotonic_ns() - heartbeat_ns_ < interval_ms * 1'000'000) return;
  heartbeat_ns_ = clock_.monotonic_ns();
  study_.mark_worker_active(id_, study_.now_ms());
  if (study_.heartbeat()) return;
  throw core::RunError("other workers took over this worker's trials, because it sent no heartbeat for too long",
                       "start it again: roux sweep work " + study_.info().name);
}

/// False when there is no sense in waiting any longer.
bool Worker::wait_for_study(const StudyStore::Outage& outage) {
  if (outage.attempts == 0) {
    away_since_ns_ = clock_.monotonic_ns();
    options_.warn(outage.why + "; trials continue, retrying");
  }
  pollfd waiting = {signals_.descriptor(), POLLIN, 0};
  poll(&waiting, 1, static_cast<int>(outage.wait_ms));
  while (const std::optional<int> signal = signals_.next()) on_signal(*signal);
  return !leaves_at_once_ && clock_.monotonic_ns() - away_since_ns_ < kAwayMsMax * 1'000'000;
}

}  // namespace runner::sweep
