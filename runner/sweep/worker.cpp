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
#include "runner/core/files.h"
#include "runner/core/units.h"
#include "runner/store/light_file.h"
#include "runner/store/schema.h"
#include "runner/store/text.h"
#include "runner/sweep/descent.h"
#include "runner/sweep/limits.h"
#include "runner/sweep/next_variant.h"
#include "runner/sweep/spare_checkpoints.h"
#include "runner/sweep/standing.h"
#include "runner/sweep/studies.h"

namespace runner::sweep {
namespace {

constexpr int kTick_ms = 500;
constexpr std::int64_t kLookAgainMs = 1000;     // for trials, where there were none
constexpr std::int64_t kAwayMsMax = 3'600'000;  // of a study that does not answer
constexpr std::int64_t kSyncMs = 500;           // what a power cut may take back, as of a run

using sections::sweep::to_text;

/// Whether there is something to go on with; not where it was killed in its first moments.
bool has_something(const store::RunSummary& run) {
  std::error_code ignored;
  return run.status != store::RunStatus::kUnreadable && !store::branch_file(run.run_dir, "resolved.json").empty() &&
         std::filesystem::exists(store::run_db_path(run.run_dir), ignored);
}

}  // namespace

Worker::Worker(const Sweep& sweep, Study& study, Options options, const core::Clock& clock)
    : sweep_(sweep),
      study_(study),
      tried_(sweep),
      options_(std::move(options)),
      clock_(clock),
      output_dir_(output_dir_of(sweep, study)) {
  if (options_.concurrent == 0) options_.concurrent = sweep_.config().max_concurrent_trials;
  study_.set_patience([this](const StudyStore::Outage& outage) { return wait_for_study(outage); });
  id_ = study_.add_worker(study_.now_ms());
  beaten_ns_ = clock_.monotonic_ns();
}

Worker::~Worker() { study_.set_patience({}); }

Worker::End Worker::run() {
  for (;;) {
    look_at_limits();
    while (may_start() && start_next()) look_at_limits();
    if (running_.empty() && !has_more_to_come()) break;
    options_.look();
    wait_for_something();
    if (sweep_.pruner() != nullptr) prune();
    if (sweep_.config().failures.hang_timeout) look_for_hangs();
    look_at_trainings();
    if (has_news_ && clock_.monotonic_ns() - synced_ns_ > kSyncMs * 1'000'000) sync();
    beat();
  }
  study_.see_worker(id_, study_.now_ms());
  const bool over = complete_ || is_over(sweep_, study_);
  // One that a limit has ended may go on with other limits, from any of its trials.
  const bool for_good = over && study_.end_reason().empty() && is_over(sweep_, study_);
  if (over) remove_spare_checkpoints(sweep_, study_, output_dir_, for_good, spared_);
  if (has_news_) sync();
  study_.leave();
  return {signals_heard_ > 0 && !over, failure_, limit_};
}

bool Worker::may_start() const {
  return signals_heard_ == 0 && failure_.empty() && limit_.empty() && !complete_ &&
         clock_.monotonic_ns() >= looks_again_ns_ && static_cast<std::int64_t>(running_.size()) < options_.concurrent;
}

/// Trials of other workers run, which may come to wait again, or make room for what comes next.
bool Worker::has_more_to_come() const {
  return signals_heard_ == 0 && failure_.empty() && limit_.empty() && !complete_ && options_.waits_for_others;
}

/// False when there was nothing to start.
bool Worker::start_next() {
  study_.take_back();
  Study::Demand demand;
  demand.now_ms = study_.now_ms();
  demand.variants_max = sweep_.config().n_trials.value_or(std::numeric_limits<std::int64_t>::max());
  demand.replicates = sweep_.config().replicates;
  demand.propose = [this](const std::vector<Variant>& variants,
                          const std::vector<Trial>& trials) -> std::optional<Variant> {
    const auto& tried = tried_.update(study_.changes(), variants, trials);
    waits_ = next_variant_waits(sweep_, tried);
    return waits_ ? std::nullopt : next_variant(sweep_, tried);
  };
  demand.promote = [this] { return promoted(sweep_, study_); };
  waits_ = false;
  auto trial = study_.claim(demand);
  complete_ = !trial && !waits_ && !study_.has_running();
  if (trial && trial->promoted > 0) {
    options_.say("trial " + std::to_string(trial->number) + " goes on from step " + std::to_string(trial->promoted) +
                 ": it is among the best after all");
  }
  if (trial && start(*std::move(trial))) return true;
  looks_again_ns_ = clock_.monotonic_ns() + kLookAgainMs * 1'000'000;
  return false;
}

/// False where it cannot be started yet.
bool Worker::start(Trial trial) {
  const std::string run_name = trial_run_name(study_, trial.number);
  const bool is_new = trial.claims == 1;  // nobody has begun it before
  const auto run = is_new ? std::nullopt : find_trial_run(output_dir_, run_name, clock_);
  const bool unjudged = run && run->id != trial.run;
  // A training dies with its worker, in a moment; the news that it lives travel slowly from another machine.
  if (unjudged && run->owner) return put_back(trial), false;
  // Of a run that has ended: its worker went before it could write down how the trial came out.
  const std::optional<int> status = unjudged ? status_of(*run) : std::nullopt;
  if (unjudged) {
    auto record = look_at_curves(run->run_dir, sweep_.objectives(), clock_);
    const auto at = pruned_at(sweep_, study_, trial.number, record->curves[sweep_.metric()], live_curves());
    if (at) return give_up(trial, *record, *at), true;
    if (status) return conclude(trial, record, judge(record, *status, "", sweep_.objectives())), true;
  }
  auto beginning = begin(trial, run_name, unjudged ? &*run : nullptr);
  if (!beginning) {
    Outcome refused;
    refused.kind = Outcome::Kind::kRecipe;
    refused.reason = beginning.failure().message;
    return conclude(trial, std::nullopt, refused), true;
  }
  options_.trainings->start(trial.number, std::move(beginning.value().training));
  running_.push_back(
      {.trial = std::move(trial), .run_dir = beginning.value().run_dir, .step_seen_ns = clock_.monotonic_ns()});
  return true;
}

void Worker::put_back(const Trial& trial) {
  TrialEnd waits;
  waits.state = TrialState::kWaiting;
  waits.run = trial.run;
  waits.reason = trial.reason;
  waits.step = trial.step;
  waits.spent = trial.spent;
  study_.end(trial.number, waits, study_.now_ms());
}

/// A run that was interrupted goes on; any other begins, from nothing or from the checkpoint of another trial.
core::Result<Worker::Beginning> Worker::begin(const Trial& trial, const std::string& run_name,
                                              const store::RunSummary* interrupted) {
  auto recipe = trial_recipe(sweep_, study_, trial, run_name);
  if (!recipe) return recipe.failure();
  const std::int64_t parent = study_.variants().at(static_cast<std::size_t>(trial.variant)).parent;
  // Before its first save a run knows nothing of the checkpoint that it was begun from.
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
    auto read = std::make_shared<registry::Recipe>(std::move(recipe).value());
    read->path = path;
    read->sources = {std::make_shared<core::Source>(core::Source{path, std::move(text)})};
    beginning.training.recipe = std::move(read);
    return beginning;
  }
  core::make_folders(study_.folder() + "/trials").value();
  store::write_light(path, text);
  if (parent < 0) return beginning;
  const Trial model = study_.trials().at(static_cast<std::size_t>(parent));  // of a population: one trial a variant
  const auto before = trial_recipe(sweep_, study_, model, trial_run_name(study_, parent));
  if (!before) return before.failure();
  const auto checkpoint = checkpoint_at(trial_run_dir(study_, output_dir_, model), first_step_of(trial));
  if (!checkpoint) return checkpoint.failure();
  for (std::string& word : words_to_go_on(checkpoint.value(), before.value(), recipe.value())) {
    beginning.training.words.push_back(std::move(word));
  }
  return beginning;
}

/// At which its run begins: that of the checkpoint which it goes on from.
std::int64_t Worker::first_step_of(const Trial& trial) {
  const std::vector<Variant>& variants = study_.variants();
  const std::int64_t parent = variants.at(static_cast<std::size_t>(trial.variant)).parent;
  return parent < 0 ? 0 : variants.at(static_cast<std::size_t>(parent)).until;
}

void Worker::wait_for_something() {
  std::vector<pollfd> waiting = {{signals_.descriptor(), POLLIN, 0}};
  for (const int descriptor : options_.trainings->descriptors()) waiting.push_back({descriptor, POLLIN, 0});
  poll(waiting.data(), waiting.size(), kTick_ms);
  while (const std::optional<int> signal = signals_.next()) hear(*signal);
}

void Worker::hear(int signal) {
  const bool at_once = ++signals_heard_ > 1 && signal == SIGINT;
  leaves_at_once_ = leaves_at_once_ || at_once;
  if (signals_heard_ == 1 && !running_.empty()) {
    options_.say("the running trials save and leave; SIGINT (Ctrl-C) once more ends them at once");
  }
  for (const Running& running : running_) options_.trainings->send(running.trial.number, at_once ? SIGKILL : SIGTERM);
}

void Worker::look_at_trainings() {
  for (const Trainings::End& end : options_.trainings->take_ended()) {
    const auto ended = std::find_if(running_.begin(), running_.end(),
                                    [&end](const Running& running) { return running.trial.number == end.trial; });
    auto run = look_at_curves(ended->run_dir, sweep_.objectives(), clock_, options_.light.get());
    // It may have gone on beyond the point at which it is given up, or may have reported it just before its end.
    if (run && !ended->pruned_at) {
      ended->pruned_at = pruned_at(sweep_, study_, ended->trial.number, run->curves[sweep_.metric()], live_curves());
    }
    if (run && ended->pruned_at) {
      give_up(ended->trial, *run, *ended->pruned_at);
    } else {
      Outcome outcome = judge(run, end.status, end.words, sweep_.objectives());
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
  // A run that goes on is still to be judged.
  const bool goes_on = outcome.kind == Outcome::Kind::kInterrupted || outcome.kind == Outcome::Kind::kCrash ||
                       outcome.kind == Outcome::Kind::kHang;
  end.run = run && !(goes_on && end.state == TrialState::kWaiting) ? run->run.id : trial.run;
  if (run) end.spent = spent_by(run->run, first_step_of(trial));
  write_down(trial, end);
}

void Worker::write_down(const Trial& trial, const TrialEnd& end) {
  has_news_ = true;
  if (study_.end(trial.number, end, study_.now_ms())) {
    tell(trial, end);
  } else {
    options_.warn("trial " + std::to_string(trial.number) +
                  " went to another worker while this one was not heard of; what it came to here does not count");
  }
  remove_spare_checkpoints(sweep_, study_, output_dir_, false, spared_);
}

/// Of all trials that run, those of other workers too; none where no pruner looks at them.
LiveCurves Worker::live_curves() {
  LiveCurves curves;
  if (sweep_.pruner() == nullptr) return curves;
  for (const Trial& trial : study_.trials()) {
    if (trial.state != TrialState::kRunning) continue;
    const auto own = std::find_if(running_.begin(), running_.end(),
                                  [&trial](const Running& running) { return running.trial.number == trial.number; });
    const auto run = own != running_.end() ? look_at_run(own->run_dir, clock_)
                                           : find_trial_run(output_dir_, trial_run_name(study_, trial.number), clock_);
    if (run && run->id != trial.run) curves[trial.number] = read_curve(run->run_dir, sweep_.metric());
  }
  return curves;
}

void Worker::prune() {
  const LiveCurves live = live_curves();
  for (Running& running : running_) {
    if (running.pruned_at) continue;
    const auto curve = live.find(running.trial.number);
    if (curve == live.end()) continue;
    running.pruned_at = pruned_at(sweep_, study_, running.trial.number, curve->second, live);
    // It saves, so that somebody can go on with it.
    if (running.pruned_at) options_.trainings->send(running.trial.number, SIGTERM);
  }
}

/// A step that is on record is what tells a slow trial from one that waits for what never comes.
void Worker::look_for_hangs() {
  const auto patience_ns = static_cast<std::int64_t>(*sweep_.config().failures.hang_timeout * 1e9);
  for (Running& running : running_) {
    const auto run = look_at_run(running.run_dir, clock_);
    const std::int64_t now_ns = clock_.monotonic_ns();
    if (run && run->step != running.step) {
      running.step = run->step;
      running.step_seen_ns = now_ns;
    } else if (now_ns - running.step_seen_ns > patience_ns) {
      running.hangs = true;
      options_.trainings->send(running.trial.number, SIGKILL);  // what hangs may not hear anything weaker
    }
  }
}

void Worker::give_up(const Trial& trial, const store::RunRecord& run, const store::SeriesPoint& at) {
  TrialEnd end;
  end.state = TrialState::kPruned;
  end.run = run.run.id;
  end.step = at.step;
  end.value = at.value;
  end.reason = "given up at step " + std::to_string(at.step);
  for (const store::SeriesPoint& point : run.curves.at(sweep_.metric())) {
    if (point.step <= at.step) end.curve.push_back(point);
  }
  end.spent = spent_by(run.run, first_step_of(trial));
  write_down(trial, end);
}

/// Once a limit is reached no further trial begins, now or when somebody goes on, unless the limits are others then.
void Worker::look_at_limits() {
  if (!limit_.empty() || !has_limits(sweep_)) return;
  limit_ = study_.end_reason();
  if (limit_.empty()) limit_ = reached_limit(sweep_, study_.variants(), study_.trials(), study_.worked_ms());
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
      // Nobody told it to: a full disk, a time limit. Trying again at once would spin.
      if (signals_heard_ == 0 && limit_.empty())
        failure_ = "trial " + std::to_string(trial.number) + " stopped by itself: " + outcome.reason;
      return waits;
    }
    case Outcome::Kind::kCrash:
      // Told to save before it could hear: by a person, or since a limit was reached.
      if (signals_heard_ > 0 || (!limit_.empty() && sweep_.config().stop.running == sections::sweep::Running::kSave)) {
        TrialEnd waits;
        waits.state = TrialState::kWaiting;
        return waits;
      }
      return failed(trial, outcome, to_text(policy.crash));
    case Outcome::Kind::kHang: return failed(trial, outcome, to_text(policy.hang));
    case Outcome::Kind::kNan: return failed(trial, outcome, to_text(policy.nan));
    case Outcome::Kind::kMemory: return failed(trial, outcome, to_text(policy.memory));
    case Outcome::Kind::kRecipe: return failed(trial, outcome, to_text(policy.recipe));
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
  if (end.state == TrialState::kWaiting) return options_.warn(name + " starts again: " + end.reason);
  if (end.state == TrialState::kFailed) return options_.warn(name + " failed: " + end.reason);
  options_.say(standing_line(sweep_, study_, trial.number));
}

void Worker::sync() {
  study_.sync();
  synced_ns_ = clock_.monotonic_ns();
  has_news_ = false;
}

void Worker::beat() {
  if (clock_.monotonic_ns() - beaten_ns_ < study_.heartbeat_ms() * 1'000'000) return;
  beaten_ns_ = clock_.monotonic_ns();
  study_.see_worker(id_, study_.now_ms());
  if (study_.beat()) return;
  throw core::RunError("other workers took over the trials of this one, of which they had not heard for too long",
                       "start it again: roux sweep work " + study_.info().name);
}

/// False when there is no sense in waiting any longer.
bool Worker::wait_for_study(const StudyStore::Outage& outage) {
  if (outage.attempts == 0) {
    away_since_ns_ = clock_.monotonic_ns();
    options_.warn(outage.why + "; the trials go on, and it is asked again and again");
  }
  pollfd waiting = {signals_.descriptor(), POLLIN, 0};
  poll(&waiting, 1, static_cast<int>(outage.wait_ms));
  while (const std::optional<int> signal = signals_.next()) hear(*signal);
  return !leaves_at_once_ && clock_.monotonic_ns() - away_since_ns_ < kAwayMsMax * 1'000'000;
}

}  // namespace runner::sweep
