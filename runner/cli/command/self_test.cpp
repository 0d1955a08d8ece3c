#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "generated/section/launch.h"
#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/launch_flags.h"
#include "runner/cli/launch_ranks.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/process.h"
#include "runner/cuda/cuda.h"
#include "runner/resolve/recipe.h"
#include "runner/store/run_reader.h"

namespace runner::cli {
namespace {

constexpr double kTolerance = 1e-5;

// Small, without dropout, which differs between processes, and on the CPU, where every number of processes has the same
// device: check_gpu() looks at the GPU. 12 micro-batches a step: even shares for 2, 3, 4 and 6 processes.
constexpr const char* kRecipe = R"(run_name: self-test
seed: 11
device: cpu
model: {type: mlp, hidden: [16]}
data: {train: {type: synthetic, task: regression, num_samples: 100}}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
training: {max_steps: 10, micro_batch_size: 2, global_batch_size: 24}
logging_steps: 1
launch: )";

void good(const std::string& line) { std::printf("ok  %s\n", line.c_str()); }

/// The recipe to train, with the processes of `flags`, at least two.
std::optional<resolve::Recipe> own_recipe(Session& session, const RecipeFlags& flags, const std::string& path) {
  core::Node launch = core::Node::mapping();
  if (!flags.path.empty()) {
    const auto theirs = session.load(flags);
    if (!theirs) return std::nullopt;
    launch = theirs->at("launch");
  }
  launch.set("backend", core::Node::string("auto"));  // theirs may be for GPUs
  if (const auto made = core::make_folders(std::filesystem::path(path).parent_path().string()); !made) {
    session.fail(made.failure().message, made.failure().hint, core::kExitFailed);
    return std::nullopt;
  }
  if (const auto written = core::write_file_atomic(path, kRecipe + core::to_json(launch, -1) + "\n"); !written) {
    session.fail(written.failure().message, written.failure().hint, core::kExitFailed);
    return std::nullopt;
  }
  RecipeFlags own = flags;
  own.path = path;
  auto recipe = session.load(own);
  if (!recipe || recipe->launch->num_processes > 1) return recipe;
  core::Diagnostics diagnostics;
  recipe::ComposeOptions options = compose_options(flags, diagnostics);
  options.overrides.push_back({recipe::Override::Kind::kSet, "launch.num_processes=2"});
  return session.load(path, options);
}

std::optional<std::vector<store::SeriesPoint>> losses_in(Session& session, const std::string& folder) {
  const auto runs = store::list_runs(folder, core::system_clock());
  if (!runs.empty()) {
    const auto series = store::read_series(runs.front().run_dir, "loss", "train", -1);
    if (series) return series.value();
  }
  session.fail("the training in " + folder + " recorded no losses", "", core::kExitFailed);
  return std::nullopt;
}

/// Trains with all processes and with one, and compares.
void compare_trainings(Session& session, const resolve::Recipe& recipe, const std::string& folder) {
  const std::int64_t count = recipe.launch->num_processes;
  const std::int64_t machine = recipe.launch->machine_rank.value_or(0);
  Session together = session;
  together.quiet = true;
  together.command_line = {core::own_program(),
                           "run",
                           recipe.path,
                           "--quiet",
                           "--new",
                           "--output-dir",
                           folder + "/together",
                           "--set",
                           "launch=" + core::to_json(recipe.at("launch"), -1)};
  launch_ranks(together, recipe, {});
  session.exit_code = together.exit_code;
  if (session.exit_code != core::kExitDone || machine > 0) return;
  core::Process alone({core::own_program(), "run", recipe.path, "--quiet", "--new", "--output-dir", folder + "/alone",
                       "--num-processes", "1", "--num-machines", "1", "--machine-rank", "0", "--set",
                       "launch.hosts=null"});
  std::string line, last;
  while (alone.read_line(line, -1) == core::Process::Read::kLine) last = line;
  if (const int status = alone.wait(); status != 0) {
    return session.fail("the training with one process ended with exit status " + std::to_string(status) + ": " + last,
                        "", core::kExitFailed);
  }
  const auto expected = losses_in(session, folder + "/alone"), found = losses_in(session, folder + "/together");
  if (!expected || !found) return;
  for (std::size_t i = 0; i < std::min(expected->size(), found->size()); ++i) {
    const double one = (*expected)[i].value, all = (*found)[i].value;
    if (std::abs(one - all) <= kTolerance * std::abs(one)) continue;
    return session.fail("step " + std::to_string((*found)[i].step) + " has a different loss with " +
                            std::to_string(count) + " processes: " + std::to_string(all) + " instead of " +
                            std::to_string(one),
                        "please report this with the output of `roux env` on each machine", core::kExitFailed);
  }
  if (expected->size() != found->size()) {
    return session.fail("the trainings have different numbers of steps", "", core::kExitFailed);
  }
  good("training: " + std::to_string(found->size()) + " losses of " + std::to_string(count) +
       " processes equal those of one");
}

void check_nccl(Session& session, cuda::Cuda& cuda) {
  if (cuda.nccl() == nullptr) return;
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  try {
    const auto hold = [&cuda](std::chrono::milliseconds time) { cuda.hold(time); };
    for (const std::string& line : engine->self_test_nccl(cuda.nccl(), hold)) good("GPU 0: " + line);
  } catch (const core::RunError& error) {
    session.fail(std::string("GPU 0: ") + error.what(), error.hint(), core::kExitFailed);
  }
}

/// Checks the GPU, if build and machine have one. Last, as a process that used CUDA must not fork.
void check_gpu(Session& session) {
  if (!cuda::has_driver()) return;
  const auto cuda = cuda::load_cuda();
  if (!cuda) return session.fail(cuda.failure().message, cuda.failure().hint, core::kExitFailed);
  if (cuda.value() == nullptr) return;
  if (const auto gpus = cuda.value()->gpus(); !gpus) {
    std::printf("--  no GPU to check: %s\n", gpus.failure().message.c_str());
    return;
  }
  for (const cuda::Finding& finding : cuda.value()->check()) {
    if (finding.error.empty()) {
      good("GPU 0: " + finding.what);
    } else {
      session.fail("GPU 0: " + finding.what + ": " + finding.error, "", core::kExitFailed);
    }
  }
  check_nccl(session, *cuda.value());
}

void self_test(Session& session, const RecipeFlags& flags) {
  const std::string folder = session.runs_dir() + "/.self-test";
  const auto recipe = own_recipe(session, flags, folder + "/recipe.yaml");
  if (!recipe) return;
  if (!starts_ranks(*recipe)) {
    const auto info = rank_of_process(session, *recipe);
    if (!info) return;
    engine::Engine* engine = engine_or_fail(session);
    if (engine == nullptr) return;
    const double timeout_s = recipe->launch->timeout;
    const auto lines = engine->self_test(*info, timeout_s);
    if (info->rank > 0) return;
    for (const std::string& line : lines) good(line);
    return;
  }
  launch_ranks(session, *recipe, {});
  if (session.exit_code == core::kExitDone) compare_trainings(session, *recipe, folder);
  if (session.exit_code == core::kExitDone) check_gpu(session);
  std::error_code ignored;
  if (recipe->launch->machine_rank.value_or(0) == 0) std::filesystem::remove_all(folder, ignored);
}

}  // namespace

void add_self_test(Command app, Session& session) {
  auto flags = std::make_shared<RecipeFlags>();
  Command command = app.add_subcommand("self-test", "Check that several processes train correctly with this setup");
  command.add_option("RECIPE", flags->path, "Recipe whose launch section to use");
  add_override_flags(command, *flags);
  add_launch_flags(command, *flags);
  command.footer(
      "\nExamples:\n"
      "  roux self-test\n"
      "  roux self-test recipe.yaml\n"
      "  roux self-test --num-processes 4 --hosts 10.0.0.1,10.0.0.2\n\n"
      "Exit status: 0 all checks passed, 1 a check failed");
  command.callback([&session, flags] { session.command = [&session, flags] { self_test(session, *flags); }; });
}

}  // namespace runner::cli
