#include <cstdio>
#include <memory>
#include <optional>

#include "runner/cli/group/sweep.h"
#include "runner/core/error.h"
#include "runner/core/platform/process.h"
#include "runner/sweep/study/variant_summary.h"
#include "runner/sweep/trial/replay.h"

namespace runner::cli {

namespace {

void replay(Session& session, const std::string& name, const std::optional<std::int64_t>& trial) {
  const auto open = open_trainable_sweep(session, name);
  if (!open) return;
  const std::vector<sweep::Trial>& trials = open->study->trials();
  std::int64_t number = 0;
  if (trial) {
    number = *trial;
    if (number >= static_cast<std::int64_t>(trials.size())) {
      return session.fail("sweep " + open->study->info().name + " has no trial " + std::to_string(number),
                          "`roux sweep show " + open->study->info().name + "` lists them");
    }
  } else {
    const auto best = best_of(open->sweep, summaries_of(open->study->variants(), trials));
    if (!best) {
      return session.fail("sweep " + open->study->info().name + " has no completed trial yet", "", core::kExitFailed);
    }
    number = best->variant * open->sweep.config().replicates;
  }
  const auto trainings = sweep::trainings_by_exec(core::own_program(), {{}, 1});
  const auto stretches = sweep::replay(open->sweep, *open->study, number, *trainings);
  if (!stretches) {
    return session.fail(stretches.failure().message, stretches.failure().hint, stretches.failure().exit_code);
  }
  bool same = true;
  for (const sweep::Replayed& one : stretches.value()) {
    std::printf("trial %lld to step %lld  %s  %s\n", static_cast<long long>(one.trial),
                static_cast<long long>(one.step), one.checkpoint.c_str(),
                !one.difference           ? "no checkpoint to compare with"
                : one.difference->empty() ? "bit-identical"
                                          : one.difference->c_str());
    same = same && one.difference.value_or("").empty();
  }
  if (!same) session.exit_code = core::kExitFailed;
}

}  // namespace

void add_sweep_replay(Command sweep, Session& session) {
  const auto name = std::make_shared<std::string>("last");
  const auto trial = std::make_shared<std::optional<std::int64_t>>();
  Command command = sweep.add_subcommand("replay", "Train a trial and its lineage again, and compare the checkpoints");
  add_sweep_name(command, *name);
  command.add_option("--trial", *trial, "Number of the trial; the best by default")
      .type_name("N")
      .in_range(0, 1'000'000'000);
  command.footer("\nExample:\n  roux sweep replay tiny-gpt --trial 3\n");
  command.callback(
      [&session, name, trial] { session.command = [&session, name, trial] { replay(session, *name, *trial); }; });
}

}  // namespace runner::cli
