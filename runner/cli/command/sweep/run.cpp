#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runner/cli/engine_or_fail.h"
#include "runner/cli/group/sweep_flags.h"
#include "runner/cli/group/sweep_work.h"
#include "runner/cli/group/trial_devices.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/store/run_reader.h"
#include "runner/sweep/preflight.h"
#include "runner/sweep/studies.h"

namespace runner::cli {
namespace {

using sweep::Study;

struct SweepRunFlags {
  SweepFlags sweep;
  bool start_new = false, dry_run = false;
};

/// Checks variants of the sweep before any is trained, and gives some as text. False when the session has failed.
bool variants_are_sound(Session& session, const sweep::Sweep& sweep, std::vector<std::string>& examples) {
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return false;
  const std::int64_t began_ns = core::system_clock().monotonic_ns();
  core::Diagnostics diagnostics;
  const sweep::Preflight preflight = sweep::check_variants(
      sweep, [engine](const resolve::Recipe& recipe, core::Diagnostics& found) { engine->plan(recipe, {}, found); },
      diagnostics);
  examples = preflight.examples;
  session.show(diagnostics);
  if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
  const double seconds = static_cast<double>(core::system_clock().monotonic_ns() - began_ns) / 1e9;
  if (!diagnostics.has_errors()) {
    const std::string what =
        preflight.all
            ? std::to_string(preflight.checked) + " of " + core::counted(preflight.checked, "variant", "variants")
            : core::counted(preflight.checked, "point", "points") + " of the search space";
    core::log_info("checked " + what + " in " + core::format_duration(seconds));
  }
  return !diagnostics.has_errors();
}

/// What `--dry-run` says of the search.
void print_search(const sweep::Sweep& sweep, const std::vector<std::string>& examples) {
  std::printf("sampler  %s\n", sweep.sampler_type().c_str());
  for (const sweep::Metric& metric : sweep.objectives()) {
    std::printf("metric   %s, %s\n", metric.name.c_str(), metric.maximize ? "maximize" : "minimize");
  }
  const auto variants = sweep.variants_to_come();
  const std::int64_t replicates = sweep.config().replicates;
  const std::string trials = variants ? std::to_string(*variants * replicates) : "until sweep.stop";
  std::printf("trials   %s\n", trials.c_str());
  for (std::size_t i = 0; i < examples.size(); ++i) {
    std::printf("%-8s %s\n", i == 0 ? "such as" : "", core::escape_for_terminal(examples[i]).c_str());
  }
}

/// The study to resume: null for a new one, nothing when the session has failed.
std::optional<std::unique_ptr<Study>> study_to_resume(Session& session, const sweep::Sweep& sweep) {
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
    if (!before.same_value(now)) study->set_end_reason("");  // the limits have changed
    if (is_finished(sweep, *study)) return std::unique_ptr<Study>();
    study->set_recipe(sweep.identity(), sweep::lease_ms_of(sweep));
    return study;
  }
  if (!recorded || is_finished(*recorded, *study)) return std::unique_ptr<Study>();
  session.fail("sweep " + study->info().name + " is not finished, but the recipe has changed since it started",
               "`roux sweep resume " + study->info().name + "` resumes it as recorded, --new starts a new sweep");
  return std::nullopt;
}

void run(Session& session, const SweepRunFlags& flags) {
  begin_sweep(session);
  const auto sweep = read_sweep(session, flags.sweep);
  std::vector<std::string> examples;
  if (!sweep || !trials_can_use_device(session, *sweep) || !variants_are_sound(session, *sweep, examples)) return;
  if (flags.dry_run) return print_search(*sweep, examples);
  std::unique_ptr<Study> study;
  std::optional<store::StartLock> lock(sweep->base().at("output_dir").as_string());
  if (!flags.start_new) {
    auto found = study_to_resume(session, *sweep);
    if (!found) return;
    study = *std::move(found);
  }
  const bool resumes = study != nullptr;
  if (!resumes) study = sweep::begin_study(*sweep, core::system_clock()).value();
  lock.reset();
  core::log_info((resumes ? "resuming sweep " : "sweep ") + study->folder());
  run_worker(session, *sweep, *study);
}

}  // namespace

void add_sweep_run(Command sweep, Session& session) {
  auto flags = std::make_shared<SweepRunFlags>();
  Command command = sweep.add_subcommand("run", "Train variants of a recipe; resumes a sweep that was stopped");
  add_recipe(command, flags->sweep.recipe);
  add_override_flags(command, flags->sweep.recipe);
  command
      .add_option("VARIED", flags->sweep.varied,
                  "Keys to vary in addition to the recipe's sweep: optimizer.lr=1e-4,3e-4")
      .type_name("PATH=VALUES");
  command.add_option("--n-trials", flags->sweep.n_trials, "Number of variants")
      .type_name("N")
      .in_range(1, 1'000'000'000);
  command.add_option("--max-concurrent-trials", flags->sweep.max_concurrent_trials, "Maximum number of trials at once")
      .type_name("N")
      .in_range(1, 1024);
  command.add_option("--sampler", flags->sweep.sampler, "Sampler of the variants; see `roux list sampler`")
      .type_name("NAME");
  command.add_flag("--new", flags->start_new, "Start a new sweep, even if the last one can be resumed");
  command.add_flag("--dry-run", flags->dry_run, "Check the variants without training them");
  command.footer(
      "\nExamples:\n"
      "  roux sweep run recipe.yaml\n"
      "  roux sweep run recipe.yaml optimizer.lr=1e-4,3e-4,1e-3 model.n_layer=2..6\n"
      "  roux sweep run recipe.yaml optimizer.lr=1e-5..1e-2:log --n-trials 30 --max-concurrent-trials 2\n\n"
      "Exit status: 0 done, 1 stopped by a failure or all trials failed, 2 wrong recipe, 75 stopped and resumable");
  command.callback([&session, flags] { session.command = [&session, flags] { run(session, *flags); }; });
}

}  // namespace runner::cli
