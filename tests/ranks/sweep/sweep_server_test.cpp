// Workers of a sweep that PostgreSQL keeps, and what may happen to them.

#include <catch2/catch.hpp>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process/postgres.h"
#include "tests/support/process/sweep_trials.h"

namespace {

using tests::Process;
using tests::TestRun;

constexpr const char* kRecipe = R"(run_name: swept
model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adamw, lr: 0.01}
training: {max_steps: 40, micro_batch_size: 32}
launch: {num_cpu_threads_per_process: 1}
checkpoint: {save_steps: 10}
eval: {eval_steps: 10}
sweep:
  sampler: {type: random, seed: 5}
  n_trials: 24
  parameters:
    optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}
    model.hidden: {values: [[4], [8]]}
)";

std::vector<std::string> undisturbed() {
  static const std::vector<std::string> list = [] {
    const TestRun test(kRecipe);
    REQUIRE(test.roux({"sweep", "run", "recipe.yaml"}).status == 0);
    return tests::trials_of(test);
  }();
  return list;
}

std::unique_ptr<Process> worker(const TestRun& test, std::vector<std::string> words,
                                std::map<std::string, std::string> environment = {}) {
  words.insert(words.begin(), tests::roux_program());
  environment.merge(TestRun::environment());
  return std::make_unique<Process>(words, environment, test.path().string());
}

}  // namespace

TEST_CASE("four workers on PostgreSQL end each trial once, whatever becomes of one of them",
          "[ranks][sweep][postgres]") {
  tests::Postgres server;
  const auto expected = undisturbed();
  // Long enough for a worker of a machine that is busy.
  const TestRun test(std::string(kRecipe) + "  worker_timeout: 15s\n  store: " + server.address() + "\n");
  const auto first = worker(test, {"sweep", "run", "recipe.yaml"});
  REQUIRE(first->wait_for("runs/sweeps/"));
  server.hold();  // so that there is something left for each of them
  const std::vector<std::string> work = {"sweep", "work", server.address()};
  const auto killed = worker(test, work);
  const auto second = worker(test, work);
  const auto ahead = worker(test, work, {{"LD_PRELOAD", tests::build_dir() + "/lib/libskewed_clock.so"}});
  for (Process* one : {killed.get(), second.get(), ahead.get()}) REQUIRE(one->wait_for("resuming sweep "));
  server.release();
  REQUIRE(killed->wait_for("trial "));
  killed->send(SIGKILL);
  SECTION("the server goes down and comes back") {
    server.crash_and_restart();
    first->wait_for("trial ");  // or until it has seen all of them
    server.crash_and_restart();
  }
  SECTION("connections are cut") {
    server.cut_connections();
    first->wait_for("trial ");  // or until it has seen all of them
    server.cut_connections();
  }
  for (const auto& one : {first.get(), second.get(), ahead.get()}) {
    const int status = one->wait();
    INFO(one->output());
    CHECK(status == 0);
  }
  tests::check_nothing_is_lost_or_doubled(test, expected, server.address());
  CHECK(test.roux({"sweep", "show"}).output == test.roux({"sweep", "show", server.address()}).output);
}
