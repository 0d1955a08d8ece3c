#include "runner/cli/group/sweep_work.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "runner/cli/group/git_state_of.h"
#include "runner/cli/group/sweep.h"
#include "runner/cli/group/trial_devices.h"
#include "runner/cli/program.h"
#include "runner/cli/training_signals.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/process.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/review/sweep/board.h"
#include "runner/store/in_memory_run.h"
#include "runner/sweep/study/variant_summary.h"
#include "runner/sweep/worker.h"

namespace runner::cli {
namespace {

/// `front`: the best variants, at least one.
void print_best(const sweep::Sweep& sweep, sweep::Study& study, const std::vector<sweep::VariantSummary>& front) {
  const auto& variants = study.variants();
  if (sweep.objectives().size() > 1) {
    std::printf("\n%s on the Pareto front: roux sweep best %s\n",
                core::counted(static_cast<std::int64_t>(front.size()), "variant", "variants").c_str(),
                study.info().name.c_str());
    return;
  }
  const sweep::VariantSummary* best = &front.front();
  std::printf(
      "\nbest %s %s  %s\n", core::escape_for_terminal(sweep.metric()).c_str(),
      sweep::short_number(*best->value).c_str(),
      core::escape_for_terminal(sweep.space().short_text(variants[static_cast<std::size_t>(best->variant)].point))
          .c_str());
  std::printf("  show it  roux sweep show %s\n", study.info().name.c_str());
}

/// Trains a trial in this process. Its log goes to its own file.
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

std::unique_ptr<sweep::Trainings> trainings_of(const sweep::Sweep& sweep, sweep::GpuShares gpus,
                                               std::shared_ptr<store::InMemoryRun>& light) {
  using sections::sweep::Isolation;
  const std::string program = core::own_program();
  switch (sweep.config().isolation) {
    case Isolation::kFork: return sweep::trainings_by_fork(program);
    case Isolation::kExec: return sweep::trainings_by_exec(program, std::move(gpus));
    case Isolation::kNone: break;
  }
  light = std::make_shared<store::InMemoryRun>();
  return sweep::in_process_runner([program, light, code = git_state_of(sweep.base())](const sweep::Training& training,
                                                                                      const std::atomic<int>& signal,
                                                                                      std::string& errors) {
    return train_here(program, training, {code, &signal, &errors, light});
  });
}

/// Prints how the work ended, and sets the exit status.
void report_end(Session& session, const sweep::Sweep& sweep, sweep::Study& study, const SweepWorkFlags& flags,
                const sweep::Worker::End& end) {
  const std::string& name = study.info().name;
  if (!end.failure.empty()) {
    return session.fail("sweep " + name + " was stopped: " + end.failure, "`roux sweep resume " + name + "` resumes it",
                        core::kExitFailed);
  }
  if (!end.limit.empty()) core::log_info("no more trials are started: " + end.limit);
  if (end.stopped) {
    std::printf("sweep %s was stopped: roux sweep resume %s resumes it\n", name.c_str(), name.c_str());
    session.exit_code = core::kExitResumable;
    return;
  }
  const auto front = front_of(sweep, summaries_of(study.variants(), study.trials()));
  if (!front.empty()) {
    if (!session.quiet) print_best(sweep, study, front);
  } else if (end.limit.empty() && !flags.no_wait) {
    session.fail("no trial completed with a result", "`roux sweep show " + name + "` shows why", core::kExitFailed);
  }
}

void work(Session& session, const SweepWorkFlags& flags) {
  begin_sweep(session);
  const auto open = open_trainable_sweep(session, flags.name);
  if (!open) return;
  if (flags.concurrent > 1 && open->sweep.config().isolation == sections::sweep::Isolation::kNone) {
    return session.fail("with sweep.isolation none a worker trains one trial at a time",
                        "omit --max-concurrent-trials " + std::to_string(flags.concurrent) + ", or start more workers");
  }
  if (!trials_can_use_device(session, open->sweep)) return;
  core::log_info("resuming sweep " + open->study->folder());
  run_worker(session, open->sweep, *open->study, flags);
}

}  // namespace

void begin_sweep(Session& session) {
  session.outlives_readers = true;
  handle_training_signals();
}

void run_worker(Session& session, const sweep::Sweep& sweep, sweep::Study& study, const SweepWorkFlags& flags) {
  const core::ThreadLog heard_beside_a_training;
  sweep::GpuShares gpus =
      share_gpus(session, sweep, flags.concurrent > 0 ? flags.concurrent : sweep.config().max_concurrent_trials);
  sweep::Worker::Options options;
  options.trainings = trainings_of(sweep, std::move(gpus), options.light);
  options.reads_recipes = options.light == nullptr || Session::changes_recipes();
  options.concurrent = flags.concurrent;
  options.waits_for_others = !flags.no_wait;
  review::SweepLive live(session.quiet, session.color, sweep, study, core::system_clock());
  options.say = [&live](const std::string& line) { live.say(line); };
  options.warn = [&live](const std::string& line) { live.warn(line); };
  options.look = [&live] { live.look(); };
  sweep::Worker worker(sweep, study, std::move(options), core::system_clock());  // blocks signals while it lives
  const sweep::Worker::End end = worker.run();
  live.clear();
  report_end(session, sweep, study, flags, end);
  leave_on_signal_with(session.exit_code);
}

void add_sweep_worker(Command sweep, Session& session, const char* name, const char* title, const char* footer) {
  auto flags = std::make_shared<SweepWorkFlags>();
  Command command = sweep.add_subcommand(name, title);
  add_sweep_name(command, flags->name);
  command.add_option("--max-concurrent-trials", flags->concurrent, "Maximum number of trials at once in this process")
      .type_name("N")
      .in_range(1, 1024);
  command.add_flag("--no-wait", flags->no_wait,
                   "Exit when no trial is left to start, without waiting for those of other workers");
  command.footer(footer);
  command.callback([&session, flags] { session.command = [&session, flags] { work(session, *flags); }; });
}

}  // namespace runner::cli
