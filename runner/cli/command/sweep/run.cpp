#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "runner/cli/engine_or_fail.h"
#include "runner/cli/git_state_of.h"
#include "runner/cli/program.h"
#include "runner/cli/sweep.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/process.h"
#include "runner/core/text.h"
#include "runner/recipe/compose.h"
#include "runner/review/sweep/board.h"
#include "runner/store/in_memory_run.h"
#include "runner/store/run_reader.h"
#include "runner/sweep/preflight.h"
#include "runner/sweep/study/variant_summary.h"
#include "runner/sweep/worker.h"

namespace runner::cli {
namespace {

using recipe::Override;
using sweep::Study;
using sweep::Sweep;

/// What the command line says about the sweep, as changes of the recipe.
bool add_changes(Session& session, const SweepRunFlags& flags, recipe::ComposeOptions& options) {
  std::set<std::string> varied;
  for (const std::string& text : flags.varied) {
    const auto set = varied_as_set(text);
    if (!set) {
      session.fail(set.failure().message, set.failure().hint);
      return false;
    }
    const std::string path = text.substr(0, text.find('='));
    if (!varied.insert(path).second) {
      session.fail(path + " is varied twice on the command line", "keep one of them: " + text);
      return false;
    }
    options.overrides.push_back({Override::Kind::kSet, set.value(), text});
  }
  const auto add = [&](const char* key, const char* flag, const std::string& value) {
    options.overrides.push_back(
        {Override::Kind::kSet, std::string("sweep.") + key + "=" + value, std::string(flag) + " " + value});
  };
  if (flags.n_trials) add("n_trials", "--n-trials", std::to_string(*flags.n_trials));
  if (flags.max_concurrent_trials) {
    add("max_concurrent_trials", "--max-concurrent-trials", std::to_string(*flags.max_concurrent_trials));
  }
  if (!flags.sampler.empty()) add("sampler", "--sampler", flags.sampler);
  return true;
}

/// False after telling what is wrong.
bool variants_are_sound(Session& session, const Sweep& sweep) {
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return false;
  const std::int64_t began_ns = core::system_clock().monotonic_ns();
  core::Diagnostics diagnostics;
  const sweep::Preflight preflight = sweep::look_ahead(
      sweep, [engine](const resolve::Recipe& recipe, core::Diagnostics& found) { engine->plan(recipe, found); },
      diagnostics);
  session.show(diagnostics);
  if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
  const double seconds = static_cast<double>(core::system_clock().monotonic_ns() - began_ns) / 1e9;
  if (!diagnostics.has_errors()) {
    const std::string what = preflight.all
                                 ? "all of " + core::counted(preflight.checked, "variant", "variants")
                                 : core::counted(preflight.checked, "point", "points") + " of the search space";
    core::log_info("checked " + what + " in " + core::format_duration(seconds));
  }
  return !diagnostics.has_errors();
}

/// The sweep that this command goes on with: null for a new one. Nothing after saying why neither will do.
std::optional<std::unique_ptr<Study>> study_to_go_on_with(Session& session, const Sweep& sweep) {
  auto newest = sweep::newest_study(sweep);
  if (!newest) {
    session.fail(newest.failure().message, newest.failure().hint, newest.failure().exit_code);
    return std::nullopt;
  }
  std::unique_ptr<Study> study = std::move(newest).value();
  if (study == nullptr) return study;
  core::Diagnostics diagnostics;
  const auto recorded = sweep::recorded_sweep(*study, diagnostics);
  if (recorded && recorded->identity_of_trials() == sweep.identity_of_trials()) {
    const core::Node &before = recorded->base().at("sweep.stop"), &now = sweep.base().at("sweep.stop");
    if (!before.same_value(now)) study->set_end_reason("");  // other limits are still to be reached
    if (is_over(sweep, *study)) return std::unique_ptr<Study>();
    study->set_recipe(sweep.identity(), sweep::lease_ms_of(sweep));
    return study;
  }
  if (!recorded || is_over(*recorded, *study)) return std::unique_ptr<Study>();
  session.fail("sweep " + study->info().name + " is not over, and the recipe is not the one that it was begun with",
               "roux sweep resume " + study->info().name + " goes on with what was recorded, --new begins another");
  return std::nullopt;
}

/// `front`: the best variants, at least one.
void tell_end(const Sweep& sweep, Study& study, const std::vector<sweep::VariantSummary>& front) {
  const auto& variants = study.variants();
  if (sweep.objectives().size() > 1) {
    std::printf("\nno other variant is better than %s: roux sweep best %s\n",
                core::counted(static_cast<std::int64_t>(front.size()), "variant", "variants").c_str(),
                study.info().name.c_str());
    return;
  }
  const sweep::VariantSummary* best = &front.front();
  std::printf("\nbest %s %s  %s\n", sweep.metric().c_str(), sweep::short_number(*best->value).c_str(),
              sweep.space().short_text(variants[static_cast<std::size_t>(best->variant)].point).c_str());
  std::printf("  look at it  roux sweep show %s\n", study.info().name.c_str());
}

/// A trial in this process. What it logs goes into its own file.
int train_here(const std::string& program, const sweep::Training& training, Host host) {
  const core::LogOptions before = core::log_options();
  std::vector<std::string> command_line = {program};
  command_line.insert(command_line.end(), training.words.begin(), training.words.end());
  const int status = training.recipe != nullptr
                         ? run_recipe(command_line, *training.recipe, training.run_id, std::move(host))
                         : run_program(command_line, std::move(host));
  core::set_log_file("");
  core::configure_log(before);
  return status;
}

std::unique_ptr<sweep::Trainings> trainings_of(const Sweep& sweep, std::shared_ptr<store::InMemoryRun>& light) {
  using sections::sweep::Isolation;
  const std::string program = core::own_program();
  switch (sweep.config().isolation) {
    case Isolation::kFork: return sweep::trainings_by_fork(program);
    case Isolation::kExec: return sweep::trainings_by_exec(program);
    case Isolation::kNone: break;
  }
  light = std::make_shared<store::InMemoryRun>();
  return sweep::trainings_within([program, light, code = git_state_of(sweep.base())](const sweep::Training& training,
                                                                                     const std::atomic<int>& signal,
                                                                                     std::string& errors) {
    return train_here(program, training, {code, &signal, &errors, light});
  });
}

void work(Session& session, const Sweep& sweep, Study& study, const SweepWorkFlags& flags = {}) {
  const core::OwnLog heard_beside_a_training;
  sweep::Worker::Options options;
  options.trainings = trainings_of(sweep, options.light);
  options.reads_recipes = options.light == nullptr || Session::changes_recipes();
  options.concurrent = flags.concurrent;
  options.waits_for_others = !flags.no_wait;
  review::SweepLive live(session.quiet, session.color, sweep, study, core::system_clock());
  options.say = [&live](const std::string& line) { live.say(line); };
  options.warn = [&live](const std::string& line) { live.warn(line); };
  options.look = [&live] { live.look(); };
  sweep::Worker worker(sweep, study, std::move(options), core::system_clock());
  const sweep::Worker::End end = worker.run();
  live.clear();
  if (!end.failure.empty()) {
    return session.fail("sweep " + study.info().name + " was stopped: " + end.failure,
                        "roux sweep resume " + study.info().name + " goes on", core::kExitFailed);
  }
  if (!end.limit.empty()) core::log_info("no further trial begins: " + end.limit);
  if (end.stopped) {
    std::printf("sweep %s was stopped: roux sweep resume %s goes on\n", study.info().name.c_str(),
                study.info().name.c_str());
    session.exit_code = core::kExitResumable;
    return;
  }
  const auto front = front_of(sweep, summaries_of(study.variants(), study.trials()));
  if (!front.empty()) {
    if (!session.quiet) tell_end(sweep, study, front);
  } else if (end.limit.empty() && !flags.no_wait) {
    session.fail("no trial came to an end that counts", "roux sweep show " + study.info().name + " says why",
                 core::kExitFailed);
  }
}

}  // namespace

std::optional<sweep::Sweep> read_sweep(Session& session, const SweepRunFlags& flags) {
  auto options = session.changes(flags.recipe);
  if (!options || !add_changes(session, flags, *options)) return std::nullopt;
  core::Diagnostics diagnostics;
  auto open = recipe::compose_open(flags.recipe.path, *options, diagnostics);
  std::optional<Sweep> sweep;
  if (open) sweep = Sweep::read(flags.recipe.path, *std::move(open), diagnostics);
  session.show(diagnostics);
  if (!sweep) session.exit_code = core::kExitUsage;
  return sweep;
}

void sweep_run(Session& session, SweepRunFlags& flags) {
  const auto sweep = read_sweep(session, flags);
  if (!sweep || !variants_are_sound(session, *sweep) || flags.dry_run) return;
  std::unique_ptr<Study> study;
  std::optional<store::StartLock> lock(sweep->base().at("output_dir").as_string());
  if (!flags.start_anew) {
    auto found = study_to_go_on_with(session, *sweep);
    if (!found) return;
    study = *std::move(found);
  }
  const bool goes_on = study != nullptr;
  if (!goes_on) study = sweep::begin_study(*sweep, core::system_clock()).value();
  lock.reset();
  core::log_info((goes_on ? "going on with sweep " : "sweep ") + study->folder());
  work(session, *sweep, *study);
}

void sweep_work(Session& session, const SweepWorkFlags& flags) {
  const auto open = open_trainable_sweep(session, flags.name);
  if (!open) return;
  if (flags.concurrent > 1 && open->sweep.config().isolation == sections::sweep::Isolation::kNone) {
    return session.fail(
        "with sweep.isolation none a worker has one trial at a time",
        "leave out --max-concurrent-trials " + std::to_string(flags.concurrent) + ", or start more workers");
  }
  core::log_info("going on with sweep " + open->study->folder());
  work(session, open->sweep, *open->study, flags);
}

}  // namespace runner::cli
