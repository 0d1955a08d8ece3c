#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "generated/section/checkpoint.h"
#include "generated/section/eval.h"
#include "generated/section/training.h"
#include "runner/cli/commands.h"
#include "runner/cli/proof/prover.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/process.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSaveWhenNever = "0.2dur";

struct ProveFlags {
  RecipeFlags recipe;
  ProofOptions proof;
};

/// Whether two runs of the recipe always differ, because something that is compared depends on time.
bool depends_on_time(const resolve::Recipe& recipe, Session& session) {
  core::Diagnostics diagnostics;
  if (recipe.training->max_time) {
    diagnostics.error(recipe.location("training.max_time"),
                      "training.max_time ends training by the clock, so no two runs are the same",
                      "limit it by max_steps for the proof: --set training.max_time=null --set training.max_steps=200");
  }
  const auto& eval_steps = recipe.eval->eval_steps;
  if (eval_steps && eval_steps->unit == core::Interval::Unit::kSeconds) {
    diagnostics.error(recipe.location("eval.eval_steps"),
                      "eval.eval_steps counts time, so no two runs evaluate at the same steps",
                      "count steps for the proof: --set eval.eval_steps=50");
  }
  session.show(diagnostics);
  if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
  return diagnostics.has_errors();
}

std::vector<std::string> child_arguments(const ProveFlags& flags, const recipe::ComposeOptions& options,
                                         const resolve::Recipe& recipe) {
  std::vector<std::string> arguments = {core::own_program(), "run", flags.recipe.path, "--verbose"};
  for (const recipe::Override& change : options.overrides) {
    arguments.push_back(change.kind == recipe::Override::Kind::kSet ? "--set" : "--set-file");
    arguments.push_back(change.text);
  }
  for (const std::string& text : flags.recipe.ext) arguments.insert(arguments.end(), {"--ext", text});
  // The ends are compared, and a killed run has to resume by itself.
  for (const char* change : {"checkpoint.save_at_end=true", "checkpoint.resume_from_checkpoint=auto"})
    arguments.insert(arguments.end(), {"--set", change});
  if (!recipe.checkpoint->save_steps) {
    arguments.insert(arguments.end(), {"--set", std::string("checkpoint.save_steps=") + kSaveWhenNever});
    std::printf("the recipe saves only at its end; for this proof it saves five times\n");
  }
  return arguments;
}

void prove_resume(Session& session, ProveFlags& flags) {
  core::Diagnostics diagnostics;
  const recipe::ComposeOptions options = compose_options(flags.recipe, diagnostics);
  session.hub = HubUse::kAll;
  const auto recipe = session.load(flags.recipe);
  if (!recipe || depends_on_time(*recipe, session)) return;
  for (const std::int64_t step : flags.proof.kill_at) {
    if (step < 1) return session.fail("--kill-at counts optimizer steps from 1, got " + std::to_string(step));
  }
  if (flags.proof.seed == 0)
    flags.proof.seed = static_cast<std::uint64_t>(core::system_clock().monotonic_ns()) % 1'000'000 + 1;
  const std::string parent = recipe->output_dir;
  std::error_code error;
  fs::create_directories(parent, error);
  std::string folder = parent + "/prove-resume-XXXXXX";
  if (error || mkdtemp(folder.data()) == nullptr) {
    return session.fail("cannot create a folder in " + parent, "choose another folder with --output-dir",
                        core::kExitFailed);
  }
  std::printf("proving in %s, --seed %llu\n", core::escape_for_terminal(folder).c_str(),
              static_cast<unsigned long long>(flags.proof.seed));
  prove(session, flags.proof, child_arguments(flags, options, *recipe), folder);
  if (session.exit_code == core::kExitDone && !flags.proof.keep) fs::remove_all(folder, error);
}

}  // namespace

void add_prove_resume(Command app, Session& session) {
  auto flags = std::make_shared<ProveFlags>();
  Command command = app.add_subcommand("prove-resume",
                                       "Kill runs of a recipe at many moments, and check that each ends bit-identical");
  add_recipe_flags(command, flags->recipe);
  command.add_option("--kill-at", flags->proof.kill_at, "Kill only after these optimizer steps, each in its own run")
      .delimiter(',')
      .type_name("STEP,...");
  command.add_option("--kills", flags->proof.kills, "Number of random kill points (default 20)")
      .check([](const std::string& text) {
        return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 7
                   ? std::string()
                   : "must be an integer of at least 0, got \"" + text + "\"";
      })
      .type_name("N");
  command.add_option("--seed", flags->proof.seed, "Seed of the random kill points; different each time by default")
      .type_name("N");
  command.add_flag("--keep", flags->proof.keep, "Keep all runs");
  command.footer(
      "\nExamples:\n"
      "  roux prove-resume recipes/quickstart.yaml --set training.max_steps=40\n"
      "  roux prove-resume recipe.yaml --kills 50\n"
      "  roux prove-resume recipe.yaml --kill-at 3,17\n\n"
      "One run is not killed. The others get SIGKILL: while starting, during and right after a save, while\n"
      "evaluating, in the first step after a resume, several times in one run, and at random. Each is resumed by the\n"
      "same command. Parameters, optimizer, random states, counters and all metrics that do not measure time must be\n"
      "bit-identical.\n\n"
      "Exit status: 0 all identical, 1 something differs (it is named)");
  command.callback([&session, flags] { session.command = [&session, flags] { prove_resume(session, *flags); }; });
}

}  // namespace runner::cli
