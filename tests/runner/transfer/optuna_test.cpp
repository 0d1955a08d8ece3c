#include "runner/transfer/optuna.h"

#include <catch2/catch.hpp>
#include <limits>

#include "runner/core/json.h"
#include "tests/runner/cli/sweep_fixture.h"

namespace {

using namespace runner::sweep;
using namespace runner::transfer;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kSpace =
    "  parameters:\n"
    "    optimizer.type: {values: [sgd, adamw]}\n"
    "    optimizer.lr: {distribution: log_uniform, min: 0.001, max: 0.1}\n"
    "    optimizer.momentum: {min: 0, max: 1, when: 'optimizer.type == \"sgd\"'}\n"
    "    model.hidden: {values: [[4], [8, 8]]}\n"
    "    training.max_steps: {min: 2, max: 9, q: 2}\n";

OpenSweep three(const std::string& folder) {
  auto open = cli_test::open_sweep(folder, kSpace);
  cli_test::add_trial(open, {0, 0.001, 0.5, 1, 4}, {.value = 3, .curve = {{1, 5}, {2, 3}}});
  cli_test::add_trial(open, {1, 0.1, kNone, 0, 2},
                      {.state = TrialState::kPruned, .value = 4, .curve = {{1, kNone}, {2, 4}}});
  cli_test::add_trial(open, {1, 0.01, kNone, 0, 8}, {.state = TrialState::kFailed, .step = 0, .reason = "it fell"});
  return open;
}

OptunaParameter number(const char* name, double value) {
  return {name, value,
          runner::core::parse_json(R"({"name": "FloatDistribution", "attributes": {"low": 0, "high": 1}})").value()};
}

/// The sweep of the recipe that stands in for a study.
std::optional<Sweep> sweep_of(const StandIn& made) {
  runner::core::Diagnostics diagnostics;
  auto sweep = Sweep::read("study.db", as_written(made.recipe, "study.db", ".", diagnostics).value(), diagnostics);
  INFO(render(diagnostics));
  CHECK(sweep);
  return sweep;
}

}  // namespace

TEST_CASE("a sweep is the same after a way through Optuna's tables", "[sweep][optuna]") {
  const tests::TempDir dir;
  const auto open = three(dir.path());
  const std::string file = dir.path() + "/study.db";
  REQUIRE(write_optuna(file, to_optuna(open.sweep, *open.study)).ok());
  CHECK(write_optuna(file, {}).failure().message == file + " already exists");
  const auto read = read_optuna(file, "");
  REQUIRE(read.ok());
  CHECK(read.value().name == "tiny-1");
  const OptunaTrial& first = read.value().trials.at(0);
  CHECK(first.state == "COMPLETE");
  CHECK(first.started_ms == 1000);
  CHECK(first.ended_ms == 2000);
  REQUIRE(first.parameters.size() == 5);
  CHECK(runner::core::to_json(first.parameters[1].distribution, -1) ==
        R"({"name": "FloatDistribution", "attributes": {"log": true, "step": null, "low": 0.001, "high": 0.1}})");
  CHECK(runner::core::to_json(first.parameters[3].distribution, -1) ==
        R"({"name": "CategoricalDistribution", "attributes": {"choices": ["[4]", "[8, 8]"]}})");
  CHECK(runner::core::to_json(first.parameters[4].distribution, -1) ==
        R"({"name": "IntDistribution", "attributes": {"log": false, "step": 2, "low": 2, "high": 8}})");

  const tests::TempDir other;
  const auto copy = cli_test::open_sweep(other.path(), kSpace);
  const Importable found = importable(read.value(), {}, copy.sweep.space());
  CHECK(found.left_out.empty());
  import_trials(found, copy.sweep.space(), *copy.study);
  REQUIRE(copy.study->trials().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Trial &got = copy.study->trials()[i], &wanted = open.study->trials()[i];
    CHECK(got.state == wanted.state);
    CHECK(got.value == wanted.value);
    CHECK(got.started_ms == wanted.started_ms);
    CHECK(got.ended_ms == wanted.ended_ms);
    CHECK(copy.study->variants()[i].text == open.study->variants()[i].text);
    CHECK(copy.study->curve(static_cast<std::int64_t>(i)).size() ==
          open.study->curve(static_cast<std::int64_t>(i)).size());
  }
  CHECK(copy.study->trials()[2].reason == "it fell");
}

TEST_CASE("a trial of Optuna that the sweep has no place for is left out", "[sweep][optuna]") {
  const tests::TempDir dir, other;
  OptunaStudy study = to_optuna(three(dir.path()).sweep, *three(other.path()).study);
  study.trials[0].parameters[1].value = 0.5;  // beyond the learning rates
  study.trials[1].parameters[1].name = "lr";
  study.trials[2].state = "RUNNING";
  const tests::TempDir third;
  const auto into = cli_test::open_sweep(third.path(), kSpace);
  const Importable found = importable(study, {}, into.sweep.space());
  CHECK(found.trials.empty());
  CHECK(found.left_out == std::vector<std::string>{"trial 0: optimizer.lr has no value 0.5",
                                                   "trial 1: it has no value for optimizer.lr",
                                                   "trial 2: it has not ended"});
  CHECK(importable(study, {.paths = {{"lr", "optimizer.lr"}}}, into.sweep.space()).trials.size() == 1);
}

TEST_CASE("a study without a recipe gets one that has its parameters", "[sweep][optuna]") {
  const tests::TempDir dir, other;
  const auto open = three(dir.path());
  const OptunaStudy study = to_optuna(open.sweep, *open.study);
  const StandIn made = stand_in_for(study, "runs");
  CHECK(made.paths.at("optimizer.lr") == "vars.optimizer_lr");
  const auto sweep = sweep_of(made);
  REQUIRE(sweep);
  StudyInfo info;
  info.name = "tiny-2";
  const auto into = Study::create(other.path(), info).value();
  const Importable found = importable(study, {.paths = made.paths, .may_lack = true}, sweep->space());
  CHECK(found.left_out.empty());
  import_trials(found, sweep->space(), *into);
  CHECK(into->variants().at(1).text ==
        "vars.optimizer_type=adamw vars.optimizer_lr=0.1 vars.model_hidden=[4] vars.training_max_steps=2");
}

TEST_CASE("parameters with names that map to the same path get numbers", "[sweep][optuna]") {
  OptunaStudy study{.name = "tuning", .maximize = {true}};
  study.trials = {{.state = "COMPLETE",
                   .parameters = {number("a-b", 0.1), number("a_b", 0.2), number("a.b", 0.3), number("a_b_2", 0.4)},
                   .values = {1}}};
  const StandIn made = stand_in_for(study, "runs");
  CHECK(made.paths == std::map<std::string, std::string>{
                          {"a-b", "vars.a_b_3"}, {"a.b", "vars.a_b_4"}, {"a_b", "vars.a_b"}, {"a_b_2", "vars.a_b_2"}});
  CHECK(numbered_paths(made.paths) == std::map<std::string, std::string>{{"a-b", "vars.a_b_3"}, {"a.b", "vars.a_b_4"}});
  const auto sweep = sweep_of(made);
  REQUIRE(sweep);
  CHECK(sweep->maximizes());
  const Importable found = importable(study, {.paths = made.paths, .may_lack = true}, sweep->space());
  REQUIRE(found.trials.size() == 1);
  CHECK(sweep->space().text(found.trials[0].second) == "vars.a_b_3=0.1 vars.a_b=0.2 vars.a_b_4=0.3 vars.a_b_2=0.4");
}

TEST_CASE("two parameters cannot become one path of a recipe", "[sweep][optuna]") {
  const tests::TempDir dir;
  const auto open = cli_test::open_sweep(dir.path(), "  parameters: {optimizer.lr: {min: 0, max: 1}}\n");
  OptunaStudy study{.name = "tuning", .maximize = {false}};
  study.trials = {{.state = "COMPLETE", .parameters = {number("lr", 0.1), number("rate", 0.2)}, .values = {1}}};
  const Importable found =
      importable(study, {.paths = {{"lr", "optimizer.lr"}, {"rate", "optimizer.lr"}}}, open.sweep.space());
  CHECK(found.left_out == std::vector<std::string>{"trial 0: both lr and rate map to optimizer.lr"});
}

TEST_CASE("several objectives keep their goals, names and values on the way", "[sweep][optuna]") {
  const double infinite = std::numeric_limits<double>::infinity();
  OptunaStudy study{.name = "two", .maximize = {false, true}, .metric_names = {"val/loss", "train"}};
  study.trials = {{.state = "COMPLETE", .parameters = {number("x", 0.1)}, .values = {1, 2}},
                  {.state = "COMPLETE", .parameters = {number("x", 0.2)}, .values = {1, kNone}},
                  {.state = "COMPLETE", .parameters = {number("x", 0.3)}, .values = {infinite, 2}},
                  {.state = "COMPLETE", .parameters = {number("x", 0.4)}, .values = {1}},
                  {.state = "PRUNED", .parameters = {number("x", 0.5)}, .curve = {{1, 3}}}};
  const tests::TempDir dir;
  const std::string file = dir.path() + "/study.db";
  REQUIRE(write_optuna(file, study).ok());
  const auto read = read_optuna(file, "two");
  REQUIRE(read.ok());
  CHECK(read.value().maximize == study.maximize);
  CHECK(read.value().metric_names == study.metric_names);
  const StandIn made = stand_in_for(read.value(), "runs");
  const auto sweep = sweep_of(made);
  REQUIRE(sweep);
  REQUIRE(sweep->objectives().size() == 2);
  CHECK(sweep->objectives()[0].name == "val_loss/loss");
  CHECK(sweep->objectives()[1].name == "train_2/loss");
  CHECK(sweep->objectives()[1].maximize);
  StudyInfo info;
  info.name = "two-1";
  const tests::TempDir folder;
  const auto into = Study::create(folder.path(), info).value();
  import_trials(importable(read.value(), {.paths = made.paths, .may_lack = true}, sweep->space()), sweep->space(),
                *into);
  std::vector<std::string> told;
  for (const Trial& trial : into->trials()) {
    told.push_back(std::string(to_text(trial.state)) + (trial.reason.empty() ? "" : ": " + trial.reason));
    CHECK(trial.value.has_value() == (trial.state == TrialState::kComplete));
  }
  CHECK(told == std::vector<std::string>{"complete", "failed: value 1 is nan in Optuna",
                                         "failed: value 0 is infinite in Optuna",
                                         "failed: it has 1 value for 2 objectives in Optuna", "pruned"});
  CHECK(into->trials()[0].others == std::vector<double>{2});
}
