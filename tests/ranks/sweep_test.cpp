#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "tests/support/process.h"
#include "tests/support/run_place.h"

namespace {

using runner::core::Node;

constexpr const char* kRecipe = R"(run_name: swept
model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adamw, lr: 0.01}
training: {max_steps: 40, micro_batch_size: 32}
checkpoint: {save_steps: 10}
eval: {eval_steps: 10}
sweep:
  sampler: {type: random, seed: 5}
  n_trials: 6
  parameters:
    optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}
    model.hidden: {values: [[4], [8]]}
)";

/// What `roux sweep export` says of each trial, without names and times.
std::vector<std::string> trials(const tests::RunPlace& place) {
  const auto exported = place.roux({"sweep", "export", "--format", "json"});
  REQUIRE(exported.status == 0);
  const Node root = runner::core::parse_json(exported.output).value();
  std::vector<std::string> list;
  for (Node trial : root.find("trials")->items()) {
    for (const char* key : {"run", "started_ms", "ended_ms"}) trial.erase(key);
    list.push_back(runner::core::to_json(trial, -1));
  }
  return list;
}

/// Finished runs of each trial.
std::map<std::string, int> finished_runs(const tests::RunPlace& place) {
  const auto listed = place.roux({"runs", "list", "--format", "json"});
  REQUIRE(listed.status == 0);
  std::map<std::string, int> count;
  const Node runs = runner::core::parse_json(listed.output).value();
  for (const Node& run : runs.items()) {
    if (run.find("status")->as_string() == "finished") ++count[run.find("name")->as_string()];
  }
  return count;
}

std::vector<std::string> undisturbed() {
  static const std::vector<std::string> list = [] {
    const tests::RunPlace place(kRecipe);
    REQUIRE(place.roux({"sweep", "run", "recipe.yaml"}).status == 0);
    return trials(place);
  }();
  return list;
}

/// Processes that this one has started and that run.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat;
    std::getline(std::ifstream(entry.path() / "stat"), stat);
    const std::size_t name_end = stat.rfind(')');  // the name in parentheses may hold anything
    if (name_end == std::string::npos) continue;   // it has ended meanwhile
    std::istringstream rest(stat.substr(name_end + 1));
    std::string state;
    pid_t its_parent = 0;
    rest >> state >> its_parent;
    if (its_parent == parent && state != "Z") children.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return children;
}

void check_nothing_is_lost_or_doubled(const tests::RunPlace& place) {
  CHECK(trials(place) == undisturbed());
  const auto runs = finished_runs(place);
  CHECK(runs.size() == undisturbed().size());
  for (const auto& [name, count] : runs) CHECK(count == 1);
}

}  // namespace

TEST_CASE("a sweep that was killed goes on as if it had not been", "[ranks][sweep]") {
  // After the words of the sweep: at its beginning, and with so much left that it cannot end before it is killed.
  for (const char* moment : {"runs/sweeps/", "trial 0 ", "trial 1 ", "trial 2 "}) {
    DYNAMIC_SECTION("killed after: " << moment) {
      const tests::RunPlace place(kRecipe);
      tests::Process sweep({tests::roux_program(), "sweep", "run", "recipe.yaml"}, place.environment(),
                           place.path().string());
      REQUIRE(sweep.wait_for(moment));
      sweep.send(SIGKILL);
      sweep.wait();
      const auto again = place.roux({"sweep", "run", "recipe.yaml"});
      INFO(again.output);
      REQUIRE(again.status == 0);
      check_nothing_is_lost_or_doubled(place);
    }
  }
}

TEST_CASE("a sweep that was told to stop drains, and goes on", "[ranks][sweep]") {
  const tests::RunPlace place(kRecipe);
  tests::Process sweep({tests::roux_program(), "sweep", "run", "recipe.yaml"}, place.environment(),
                       place.path().string());
  REQUIRE(sweep.wait_for("trial 1 "));
  sweep.send(SIGINT);
  CHECK(sweep.wait() == 75);
  REQUIRE(place.roux({"sweep", "resume"}).status == 0);
  check_nothing_is_lost_or_doubled(place);
}

TEST_CASE("two workers share a sweep, each trial has one", "[ranks][sweep]") {
  const tests::RunPlace place(kRecipe);
  tests::Process first({tests::roux_program(), "sweep", "run", "recipe.yaml"}, place.environment(),
                       place.path().string());
  REQUIRE(first.wait_for("runs/sweeps/"));
  const auto second = place.roux({"sweep", "resume"});
  CHECK(second.status == 0);
  CHECK(first.wait() == 0);
  check_nothing_is_lost_or_doubled(place);  // random draws do not depend on who ends first
}

TEST_CASE("a trial comes to the same bits whatever process it has", "[ranks][sweep]") {
  for (const char* isolation : {"exec", "none"}) {
    DYNAMIC_SECTION(isolation) {
      const tests::RunPlace place(kRecipe);
      const auto sweep =
          place.roux({"sweep", "run", "recipe.yaml", "--set", std::string("sweep.isolation=") + isolation});
      INFO(sweep.output);
      REQUIRE(sweep.status == 0);
      check_nothing_is_lost_or_doubled(place);
    }
  }
}

TEST_CASE("a sweep outlives the process that its trials are forked from, and each of them", "[ranks][sweep]") {
  for (const bool trial : {false, true}) {
    DYNAMIC_SECTION((trial ? "a trial" : "their origin") << " is killed") {
      const tests::RunPlace place(kRecipe);
      tests::Process sweep({tests::roux_program(), "sweep", "run", "recipe.yaml"}, place.environment(),
                           place.path().string());
      REQUIRE(sweep.wait_for("trial 0 "));
      const std::vector<pid_t> origin = children_of(sweep.pid());
      REQUIRE(origin.size() == 1);
      pid_t victim = origin.front();
      while (trial && victim == origin.front() && !children_of(sweep.pid()).empty()) {  // one is sure to begin
        if (const std::vector<pid_t> forks = children_of(origin.front()); !forks.empty()) victim = forks.front();
      }
      kill(victim, SIGKILL);
      CHECK(sweep.wait() == 0);
      INFO(sweep.output());
      check_nothing_is_lost_or_doubled(place);
    }
  }
}

TEST_CASE("a sweep without isolation drains, and goes on", "[ranks][sweep]") {
  const tests::RunPlace place(kRecipe);
  tests::Process sweep({tests::roux_program(), "sweep", "run", "recipe.yaml", "--set", "sweep.isolation=none"},
                       place.environment(), place.path().string());
  REQUIRE(sweep.wait_for("trial 1 "));
  sweep.send(SIGINT);
  CHECK(sweep.wait() == 75);
  REQUIRE(place.roux({"sweep", "resume"}).status == 0);
  check_nothing_is_lost_or_doubled(place);
}

TEST_CASE("failures are classed, and handled by their policies", "[ranks][sweep]") {
  const tests::RunPlace place(kRecipe);
  const auto sweep = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"sweep", "run",   "recipe.yaml",         "--new", "--sampler",
                                      "grid",  "--set", "sweep.n_trials=null", "--set", "~sweep.parameters"};
    words.insert(words.end(), more.begin(), more.end());
    return place.roux(words);
  };
  SECTION("a loss that is no number fails its trial alone") {
    const char* isolation = GENERATE("fork", "none");
    const auto ended =
        sweep({"optimizer.lr=0.01,1e30,0.1", "--set", std::string("sweep.isolation=") + isolation});
    INFO(ended.output);
    CHECK(ended.status == 0);
    CHECK(ended.output.find("trial 1 failed: the loss is nan at step") != std::string::npos);
    CHECK(ended.output.find("3 of 3 done") != std::string::npos);
  }
  SECTION("or stops the sweep") {
    const auto ended = sweep({"optimizer.lr=1e30,0.01", "--set", "sweep.failures.nan=stop"});
    CHECK(ended.status == 1);
    CHECK(ended.output.find("was stopped: trial 0 failed: the loss is nan at step") != std::string::npos);
  }
  SECTION("a wrong variant is found before the first trial") {
    const auto ended = sweep({"training.max_steps=4,0"});
    CHECK(ended.status == 2);
    CHECK(ended.output.find("training.max_steps must be at least 1, got 0, in the variant training.max_steps=0") !=
          std::string::npos);
    CHECK_FALSE(std::filesystem::exists(place.path() / "runs" / "sweeps"));
  }
}

TEST_CASE("a trial is given up at the same step however the sweep is disturbed", "[ranks][sweep]") {
  const std::string recipe = std::string(kRecipe) + "  pruner: {type: asha, min_steps: 10, reduction_factor: 2}\n";
  const tests::RunPlace calm(recipe), killed(recipe);
  const auto ended = calm.roux({"sweep", "run", "recipe.yaml"});
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  CHECK(ended.output.find(" pruned at step ") != std::string::npos);
  tests::Process sweep({tests::roux_program(), "sweep", "run", "recipe.yaml"}, killed.environment(),
                       killed.path().string());
  REQUIRE(sweep.wait_for("trial 2 "));
  sweep.send(SIGKILL);
  sweep.wait();
  REQUIRE(killed.roux({"sweep", "resume"}).status == 0);
  CHECK(trials(killed) == trials(calm));
}
