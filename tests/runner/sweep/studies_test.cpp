#include "runner/sweep/studies.h"

#include <catch2/catch.hpp>
#include <string>

#include "runner/recipe/renamed_keys.h"
#include "runner/resolve/former_values.h"
#include "runner/sweep/trial/lineage.h"
#include "tests/support/sweeps.h"
#include "tests/support/temp_dir.h"

using namespace runner::sweep;

TEST_CASE("a sweep that was recorded compares and trains what it did when it was begun", "[sweep][studies]") {
  runner::core::Diagnostics diagnostics;
  // Each of these keys has a value that another one would give it, were it not there.
  const auto sweep = tests::read_sweep(
      "  n_trials: 3\n"
      "  metric: {name: val/loss, goal: maximize}\n"
      "  parameters: {optimizer.lr: {min: 0.1, max: 1}}\n"
      "lr_scheduler: {type: cosine, total_steps: 50}\n"
      "eval: {eval_steps: 1, metrics: [mse]}\n"
      "checkpoint: {save_best: true, monitor: val/mse, mode: min}\n",
      diagnostics);
  INFO(render(diagnostics));
  REQUIRE(sweep);
  const tests::TempDir dir;
  StudyInfo info;
  info.name = "tiny-1";
  info.recipe_path = "recipe.yaml";
  info.recipe_dir = sweep->recipe_dir();
  info.recipe_json = sweep->identity();
  const auto study = Study::create(dir.path(), info).value();
  const auto recorded = recorded_sweep(*study, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(recorded);
  CHECK(recorded->metric() == "val/loss");
  CHECK(recorded->maximizes());
  CHECK(recorded->identity_of_trials() == sweep->identity_of_trials());
  TrialSettings settings;
  settings.run_name = "tiny-1-0";
  const auto trial = sweep->trial({0.5}, settings, diagnostics);
  const auto again = recorded->trial({0.5}, settings, diagnostics);
  REQUIRE((trial && again));
  CHECK(again->at("lr_scheduler.total_steps").as_integer() == 50);
  CHECK(again->resolved_json() == trial->resolved_json());
}

TEST_CASE("a sweep that was recorded with old words is that of the recipe with the new ones", "[sweep][studies]") {
  const auto in_old_words = [](std::string text) {
    for (const auto& key : runner::recipe::renamed_keys()) {
      for (std::size_t at = text.find(key.new_name); at != std::string::npos; at = text.find(key.new_name))
        text.replace(at, key.new_name.size(), key.old_name);
    }
    return text;
  };
  runner::core::Diagnostics diagnostics;
  const auto sweep = tests::read_sweep(
      "  sampler: random\n"
      "  parameters: {optimizer.lr: {min: 0.1, max: 1}, loader.count_repeated_samples: {values: [true, false]}}\n"
      "  population: {size: 4, interval: 1, quantile_fraction: 0.5}\n",
      diagnostics);
  INFO(render(diagnostics));
  REQUIRE(sweep);
  const tests::TempDir dir;
  StudyInfo info;
  info.name = "tiny-1";
  info.recipe_path = "recipe.yaml";
  info.recipe_dir = sweep->recipe_dir();
  info.recipe_json = in_old_words(sweep->identity());
  REQUIRE(info.recipe_json.find("loader.pad_in_loss") != std::string::npos);
  REQUIRE(info.recipe_json.find("\"replaced\"") != std::string::npos);
  const auto study = Study::create(dir.path(), info).value();
  const Point point = {0.5, 1};
  Study::Demand demand;
  demand.variants_max = 1;
  demand.propose = [&](const auto&, const auto&) {
    return Variant{0, point, in_old_words(sweep->space().text(point))};
  };
  study->add_worker(1);
  REQUIRE(study->claim(demand));
  CHECK(study->variants().front().text == sweep->space().text(point));
  const auto recorded = recorded_sweep(*study, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(recorded);
  CHECK(recorded->identity_of_trials() == sweep->identity_of_trials());
  TrialSettings settings;
  settings.run_name = "tiny-1-0";
  const auto trial = recorded->trial(point, settings, diagnostics);
  REQUIRE(trial);
  CHECK(trial->at("loader.count_repeated_samples").as_bool() == false);
}

TEST_CASE("trials keep what unset keys were when their sweep was begun", "[sweep][studies]") {
  runner::core::Diagnostics diagnostics;
  const std::string above = GENERATE(std::string(), std::string("logging_steps: 3\n"));
  const auto sweep =
      tests::read_sweep("  n_trials: 3\n  parameters: {optimizer.lr: {min: 0.1, max: 1}}\n" + above, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(sweep);
  const auto steps_of_trial = [&](const std::string& unset_json) {
    const tests::TempDir dir;
    StudyInfo info;
    info.name = "tiny-1";
    info.recipe_path = "recipe.yaml";
    info.recipe_dir = sweep->recipe_dir();
    info.recipe_json = sweep->identity();
    info.unset_json = unset_json;
    Study::create(dir.path(), info).value();
    const auto study = Study::open(dir.path()).value();
    Study::Demand demand;
    demand.variants_max = 1;
    demand.propose = [&](const auto&, const auto&) { return Variant{0, {0.5}, sweep->space().text({0.5})}; };
    study->add_worker(1);
    const auto trial = study->claim(demand);
    REQUIRE(trial);
    return trial_recipe(*sweep, *study, *trial, "tiny-1-0").value().logging_steps;
  };
  const std::string now = runner::core::to_json(runner::resolve::unset_values(sweep->base().root), -1);
  CHECK(now == (above.empty() ? R"({"logging_steps": null})" : "{}"));
  CHECK(steps_of_trial(now) == (above.empty() ? std::optional<std::int64_t>() : 3));
  CHECK(steps_of_trial("") == (above.empty() ? 10 : 3));  // recorded by a version that had a default there
}
