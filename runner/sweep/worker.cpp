#include "runner/sweep/worker.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <utility>

#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/core/files.h"
#include "runner/core/units.h"
#include "runner/store/light_file.h"
#include "runner/store/schema.h"
#include "runner/store/text.h"
#include "runner/sweep/standing.h"

namespace runner::sweep {
namespace {

constexpr int kTick_ms = 500;

using sections::sweep::to_text;

std::string first_error(const core::Diagnostics& diagnostics) {
  for (const core::Diagnostic& one : diagnostics.all()) {
    if (one.severity == core::Severity::kError) return one.message;
  }
  return "";
}

/// Whether there is something to go on with; not where it was killed in its first moments.
bool has_something(const store::RunSummary& run) {
  std::error_code ignored;
  return !store::branch_file(run.run_dir, "resolved.json").empty() &&
         std::filesystem::exists(store::run_db_path(run.run_dir), ignored);
}

}  // namespace

std::string worker_folder(const Study& study, std::int64_t worker) {
  return study.folder() + "/workers/" + std::to_string(worker);
}

Worker::Worker(const Sweep& sweep, Study& study, Options options, const core::Clock& clock)
    : sweep_(sweep),
      study_(study),
      tried_(sweep),
      options_(std::move(options)),
      clock_(clock),
      metric_{sweep.metric(), sweep.maximizes(), sweep.config().metric.take == sections::sweep::Take::kBest},
      output_dir_(sweep.base().at("output_dir").as_string()) {
  id_ = study_.add_worker(clock_.wall_ms());
  const std::string folder = worker_folder(study_, id_);
  core::make_folders(folder).value();
  lease_ = store::Lease::acquire(folder, clock_).value();
  beaten_ns_ = clock_.monotonic_ns();
}

Worker::End Worker::run() {
  for (;;) {
    while (may_start() && start_next()) {
    }
    if (running_.empty()) break;
    options_.look();
    wait_for_something();
    if (sweep_.pruner() != nullptr) prune();
    if (sweep_.config().failures.hang_timeout) look_for_hangs();
    look_at_trainings();
    beat();
  }
  lease_->release();
  return {signals_heard_ > 0 && !complete_, failure_};
}

bool Worker::may_start() const {
  return signals_heard_ == 0 && failure_.empty() && !complete_ &&
         static_cast<std::int64_t>(running_.size()) < sweep_.config().max_concurrent_trials;
}

/// False when there was nothing to start.
bool Worker::start_next() {
  study_.take_back([this](std::int64_t worker) {
    return worker == id_ || store::live_owner(worker_folder(study_, worker), clock_).has_value();
  });
  Study::Demand demand;
  demand.worker = id_;
  demand.now_ms = clock_.wall_ms();
  demand.variants_max = sweep_.config().n_trials.value_or(std::numeric_limits<std::int64_t>::max());
  demand.replicates = sweep_.config().replicates;
  demand.propose = [this](const std::vector<Variant>& variants,
                          const std::vector<Trial>& trials) -> std::optional<Variant> {
    const auto point = sweep_.sampler().propose(tried_.update(study_.changes(), variants, trials));
    if (!point) return std::nullopt;
    return Variant{static_cast<std::int64_t>(variants.size()), *point, sweep_.space().text(*point)};
  };
  auto trial = study_.claim(demand);
  complete_ = !trial;
  const bool is_new = trial && trial->started_ms == demand.now_ms && trial->run.empty();
  if (trial) start(*std::move(trial), is_new);
  return !complete_;
}

void Worker::start(Trial trial, bool is_new) {
  const std::string run_name = study_.info().name + "-" + std::to_string(trial.number);
  const auto run = is_new ? std::nullopt : find_trial_run(output_dir_, run_name, clock_);
  const bool unjudged = run && run->id != trial.run;
  // Of a run that has ended: its worker went before it could write down how the trial came out.
  const std::optional<int> status = unjudged ? status_of(*run) : std::nullopt;
  if (unjudged) {
    if (const auto at = pruned_at(sweep_, study_, trial.number, read_curve(run->run_dir, metric_.name))) {
      return give_up(trial, *run, *at);
    }
  }
  if (status) return conclude(trial, run, judge(run, *status, "", metric_));
  const auto recipe = write_recipe(trial, run_name);
  if (!recipe) {
    Outcome refused;
    refused.kind = Outcome::Kind::kRecipe;
    refused.reason = recipe.failure().message;
    return conclude(trial, std::nullopt, refused);
  }
  // A run that was interrupted goes on; any other begins.
  const std::string id = store::new_run_id(clock_.wall_ms());
  std::string run_dir = output_dir_ + "/" + run_name + "-" + id;
  std::vector<std::string> words = {"run", recipe.value(), "--new", "--quiet", "--run-id", id};
  if (unjudged && has_something(*run)) {
    run_dir = run->run_dir;
    words = {"resume", run_dir, "--quiet"};
  }
  options_.trainings->start(trial.number, words);
  running_.push_back({.trial = std::move(trial), .run_dir = run_dir, .step_seen_ns = clock_.monotonic_ns()});
}

core::Result<std::string> Worker::write_recipe(const Trial& trial, const std::string& run_name) {
  const std::string folder = study_.folder() + "/trials";
  core::make_folders(folder).value();
  TrialPlace place;
  place.run_name = run_name;
  place.replicate = trial.replicate;
  place.threads = study_.info().threads;
  place.shrink = trial.shrink;
  const Point& point = study_.variants().at(static_cast<std::size_t>(trial.variant)).point;
  core::Diagnostics diagnostics;
  const auto recipe = sweep_.trial(point, place, diagnostics);
  const std::string path = trial_recipe_path(study_, trial.number);
  if (!recipe) return core::Failure{first_error(diagnostics)};
  store::write_light(path, recipe->resolved_json());
  return path;
}

void Worker::wait_for_something() {
  std::vector<pollfd> waiting = {{signals_.descriptor(), POLLIN, 0}};
  for (const int descriptor : options_.trainings->descriptors()) waiting.push_back({descriptor, POLLIN, 0});
  poll(waiting.data(), waiting.size(), kTick_ms);
  while (const std::optional<int> signal = signals_.next()) hear(*signal);
}

void Worker::hear(int signal) {
  const bool at_once = ++signals_heard_ > 1 && signal == SIGINT;
  if (signals_heard_ == 1 && !running_.empty()) {
    options_.say("the running trials save and leave; SIGINT (Ctrl-C) once more ends them at once");
  }
  for (const Running& running : running_) options_.trainings->send(running.trial.number, at_once ? SIGKILL : SIGTERM);
}

void Worker::look_at_trainings() {
  for (const Trainings::End& end : options_.trainings->take_ended()) {
    const auto ended = std::find_if(running_.begin(), running_.end(),
                                    [&end](const Running& running) { return running.trial.number == end.trial; });
    const auto run = look_at_run(ended->run_dir, clock_);
    // It may have gone on beyond the point at which it is given up, or may have reported it just before its end.
    if (run && !ended->pruned_at) {
      ended->pruned_at = pruned_at(sweep_, study_, ended->trial.number, read_curve(run->run_dir, metric_.name));
    }
    if (run && ended->pruned_at) {
      give_up(ended->trial, *run, *ended->pruned_at);
    } else {
      Outcome outcome = judge(run, end.status, end.words, metric_);
      if (ended->hangs && outcome.kind == Outcome::Kind::kCrash) {
        outcome.kind = Outcome::Kind::kHang;
        outcome.reason = "no progress for " + core::format_duration(*sweep_.config().failures.hang_timeout);
      }
      conclude(ended->trial, run, outcome);
    }
    running_.erase(ended);
  }
}

void Worker::conclude(const Trial& trial, const std::optional<store::RunSummary>& run, const Outcome& outcome) {
  TrialEnd end = end_of(trial, outcome);
  end.value = outcome.value;
  end.step = outcome.step;
  end.curve = outcome.curve;
  end.reason = outcome.reason;
  // A run that goes on is still to be judged.
  const bool goes_on = outcome.kind == Outcome::Kind::kInterrupted || outcome.kind == Outcome::Kind::kCrash ||
                       outcome.kind == Outcome::Kind::kHang;
  end.run = run && !(goes_on && end.state == TrialState::kWaiting) ? run->id : trial.run;
  study_.end(trial.number, end, clock_.wall_ms());
  tell(trial, end);
}

void Worker::prune() {
  for (Running& running : running_) {
    if (running.pruned_at) continue;
    const auto run = look_at_run(running.run_dir, clock_);
    if (!run || run->id == running.trial.run) continue;
    running.pruned_at = pruned_at(sweep_, study_, running.trial.number, read_curve(run->run_dir, metric_.name));
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

void Worker::give_up(const Trial& trial, const store::RunSummary& run, const store::SeriesPoint& at) {
  TrialEnd end;
  end.state = TrialState::kPruned;
  end.run = run.id;
  end.step = at.step;
  end.value = at.value;
  end.reason = "given up at step " + std::to_string(at.step);
  for (const store::SeriesPoint& point : read_curve(run.run_dir, metric_.name)) {
    if (point.step <= at.step) end.curve.push_back(point);
  }
  study_.end(trial.number, end, clock_.wall_ms());
  tell(trial, end);
}

TrialEnd Worker::end_of(const Trial& trial, const Outcome& outcome) {
  const auto& policy = sweep_.config().failures;
  switch (outcome.kind) {
    case Outcome::Kind::kComplete: return {};
    case Outcome::Kind::kInterrupted: {
      TrialEnd waits;
      waits.state = TrialState::kWaiting;
      // Nobody told it to: a full disk, a time limit. Trying again at once would spin.
      if (signals_heard_ == 0)
        failure_ = "trial " + std::to_string(trial.number) + " stopped by itself: " + outcome.reason;
      return waits;
    }
    case Outcome::Kind::kCrash:
      if (signals_heard_ > 0) {
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

/// The lease of this worker is what tells the others that it is at work.
void Worker::beat() {
  if (clock_.monotonic_ns() - beaten_ns_ < store::kHeartbeatMs * 1'000'000) return;
  beaten_ns_ = clock_.monotonic_ns();
  if (!lease_->heartbeat(clock_)) {
    throw core::RunError("another worker took over the trials of this one, which slept for too long",
                         "start it again: roux sweep resume " + study_.info().name);
  }
}

std::optional<store::SeriesPoint> pruned_at(const Sweep& sweep, Study& study, std::int64_t number,
                                            const std::vector<store::SeriesPoint>& curve) {
  if (sweep.pruner() == nullptr || curve.empty()) return std::nullopt;
  using components::pruner::Curve;
  const auto reports_of = [&sweep](const std::vector<store::SeriesPoint>& points) {
    std::vector<components::pruner::Report> reports;
    for (const store::SeriesPoint& point : points) reports.push_back({point.step, sweep.signed_value(point.value)});
    return reports;
  };
  std::vector<Curve> others;
  for (const Trial& trial : study.trials()) {
    if (trial.number == number || trial.ended_ms == 0) continue;
    others.push_back({trial.number, trial.state == TrialState::kComplete, reports_of(study.curve(trial.number))});
  }
  Curve mine{number, false, {}};
  for (const store::SeriesPoint& point : curve) {
    // At its last step a trial is complete, whoever looks first.
    if (sweep.total_steps() && point.step >= *sweep.total_steps()) break;
    mine.reports.push_back({point.step, sweep.signed_value(point.value)});
    if (sweep.pruner()->gives_up(mine, others)) return point;
  }
  return std::nullopt;
}

}  // namespace runner::sweep
