// Workers beside each other, and trials in the process of their worker.

#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <vector>

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
capture: {git: false}
sweep:
)";

// The first trial does not end by itself while a test runs.
constexpr const char* kLongTrial = R"(  isolation: none
  parameters: {training.max_steps: {values: [100000000, 4]}}
)";

Process started(const TestRun& test, std::vector<std::string> words) {
  words.insert(words.begin(), tests::roux_program());
  return Process(words, TestRun::environment(), test.path().string());
}

}  // namespace

TEST_CASE("two workers share a population, whatever becomes of one of them", "[ranks][sweep][population]") {
  const std::string recipe = std::string(kRecipe) + R"(  sampler: {type: random, seed: 5}
  population: {size: 3, interval: 10}
  parameters: {optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}}
)";
  static const std::vector<std::string> undisturbed = [&recipe] {
    const TestRun calm(recipe, tests::TempDir::On::kMemory);
    REQUIRE(calm.roux({"sweep", "run", "recipe.yaml"}).status == 0);
    return tests::trials_of(calm);
  }();
  enum class Killed { kNobody, kFirst, kSecond };
  const Killed killed = GENERATE(Killed::kNobody, Killed::kFirst, Killed::kSecond);
  const TestRun test(recipe);
  Process first = started(test, {"sweep", "run", "recipe.yaml"});
  REQUIRE(first.wait_for("runs/sweeps/"));
  Process second = started(test, {"sweep", "work", "last"});
  REQUIRE(second.wait_for("resuming sweep "));
  if (killed == Killed::kFirst && first.wait_for("trial 4 ")) first.send(SIGKILL);
  if (killed == Killed::kSecond && second.wait_for("trial ")) second.send(SIGKILL);
  const int first_status = first.wait(), second_status = second.wait();
  INFO(first.output() << second.output());
  if (killed != Killed::kFirst) CHECK(first_status == 0);
  if (killed != Killed::kSecond) CHECK(second_status == 0);
  tests::check_nothing_is_lost_or_doubled(test, undisturbed);
}

TEST_CASE("a trial that kills its worker fails after its retries", "[ranks][sweep]") {
  const TestRun test(std::string(kRecipe) + kLongTrial + "  failures: {max_retries: 1}\n");
  for (const char* command : {"run", "resume"}) {
    const std::vector<std::string> more = {command == std::string("run") ? "recipe.yaml" : "last"};
    Process sweep = started(test, {"sweep", command, more.front()});
    REQUIRE(sweep.wait_for("runs/sweeps/"));
    const auto owner = tests::owner_of_trial(test, "0");
    REQUIRE(owner.has_value());
    CHECK(owner->pid == sweep.pid());
    sweep.send(SIGSEGV);
    CHECK(sweep.wait() == 128 + SIGSEGV);
    CHECK(sweep.output().find("a trial with isolation: none ended this worker") != std::string::npos);
    const bool again = sweep.output().find("trial 0 restarts: ended by signal 11") != std::string::npos;
    CHECK(again == (command == std::string("resume")));
  }
  const auto ended = test.roux({"sweep", "resume"});
  INFO(ended.output);
  CHECK(ended.status == 0);
  CHECK(ended.output.find("trial 0 failed: ended by signal 11") != std::string::npos);
  CHECK(ended.output.find("2 of 2 done") != std::string::npos);
}

TEST_CASE("a worker is heard while a trial trains in its own process", "[ranks][sweep]") {
  const TestRun test(std::string(kRecipe) + kLongTrial);
  Process sweep = started(test, {"sweep", "run", "recipe.yaml"});
  REQUIRE(sweep.wait_for("runs/sweeps/"));
  REQUIRE(tests::owner_of_trial(test, "0").has_value());
  sweep.send(SIGINT);
  CHECK(sweep.wait() == 75);
  CHECK(sweep.output().find("saving the running trials") != std::string::npos);
}

TEST_CASE("a sweep is not removed while a worker of another machine is at it", "[ranks][sweep][postgres]") {
  tests::Postgres server;
  const TestRun test(std::string(kRecipe) + kLongTrial + "  store: " + server.address() + "\n");
  const TestRun other("");
  Process worker = started(test, {"sweep", "run", "recipe.yaml"});
  REQUIRE(worker.wait_for("runs/sweeps/"));
  REQUIRE(tests::owner_of_trial(test, "0").has_value());
  REQUIRE(other.roux({"sweep", "show", server.address()}).status == 0);
  CHECK(other.roux({"sweep", "list"}).output.find(" running ") != std::string::npos);
  const auto refused = other.roux({"sweep", "rm", "swept", "--yes"});
  CHECK(refused.status != 0);
  CHECK(refused.output.find(" has active workers") != std::string::npos);
  worker.send(SIGINT);
  CHECK(worker.wait() == 75);
  CHECK(other.roux({"sweep", "list"}).output.find(" stopped ") != std::string::npos);
  const auto removed = other.roux({"sweep", "rm", "swept", "--yes"});
  INFO(removed.output);
  CHECK(removed.status == 0);
  CHECK(removed.output.find("to delete them run DROP SCHEMA \"roux_") != std::string::npos);
}

TEST_CASE("a population wants one folder for all of its workers", "[ranks][sweep][population][postgres]") {
  tests::Postgres server;
  const std::string recipe = std::string(kRecipe) + "  store: " + server.address() + R"(
  population: {size: 2, interval: 10}
  parameters: {optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}}
)";
  const TestRun test(recipe), other(recipe);
  // The first generation, and then whoever runs the sweep without the limit goes on.
  REQUIRE(test.roux({"sweep", "run", "recipe.yaml", "--set", "sweep.stop.max_steps=20"}).status == 0);
  const auto elsewhere = other.roux({"sweep", "run", "recipe.yaml"});
  INFO(elsewhere.output);
  CHECK(elsewhere.status == 1);
  CHECK(elsewhere.output.find("trial 2 resumes from a checkpoint of trial ") != std::string::npos);
  CHECK(elsewhere.output.find("workers of a population need a shared output_dir") != std::string::npos);
  const auto here = test.roux({"sweep", "work", server.address()});
  INFO(here.output);
  CHECK(here.status == 0);
  CHECK(here.output.find("8 of 8 done") != std::string::npos);
}
