#include "runner/sweep/preflight.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/sweeps.h"

using runner::core::Diagnostics;
using runner::resolve::Recipe;
using runner::sweep::Preflight;
using tests::read_sweep;

namespace {

struct Seen {
  Preflight preflight;
  std::vector<std::string> told;
};

/// What the preflight says of a sweep; `plan` stands for the engine.
Seen seen(
    const std::string& sweep,
    const std::function<void(const Recipe&, Diagnostics&)>& plan = [](const Recipe&, Diagnostics&) {}) {
  Diagnostics diagnostics;
  const auto read = read_sweep(sweep, diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(read.has_value());
  Seen result;
  result.preflight = runner::sweep::check_variants(*read, plan, diagnostics);
  for (const auto& one : diagnostics.all()) result.told.push_back(one.message);
  return result;
}

}  // namespace

TEST_CASE("constraints that hardly anything meets end the search", "[sweep]") {
  const std::string grid = "  parameters: {seed: {min: 1, max: 100000}, training.max_steps: {min: 1, max: 100000}}\n";
  CHECK(seen(grid + "  n_trials: 3\n  constraints: seed < 0").told ==
        std::vector<std::string>{"of 10000 variants 0 meet the constraints: finding the next one may take hours"});
  CHECK(seen(grid + "  constraints: seed == 100000").told ==
        std::vector<std::string>{"of 100000 variants 0 meet the constraints: finding the next one may take hours"});
  const Seen one_percent = seen(
      "  n_trials: 3\n  parameters: {seed: {min: 1, max: 100}, optimizer.lr: {min: 0, max: 1}}\n"
      "  constraints: seed == 50");
  CHECK(one_percent.told.empty());
  CHECK(one_percent.preflight.checked >= 64);
}

TEST_CASE("a mistake behind a condition is found", "[sweep]") {
  const auto plan = [](const Recipe& recipe, Diagnostics& found) {
    const auto* momentum = recipe.root.at_path("optimizer.momentum");
    if (momentum != nullptr && momentum->is_number() && momentum->as_double() == 0.7)
      found.error(momentum->location(), "it does not fit");
  };
  std::string values;
  for (int i = 0; i < 300; ++i) values += std::to_string(i == 250 ? 0.7 : i / 1000.0) + ", ";
  const Seen found = seen(
      "  n_trials: 3\n  parameters:\n"
      "    optimizer.type: {values: [adamw, adam, sgd]}\n"
      "    optimizer.lr: {min: 0, max: 1}\n"
      "    optimizer.momentum: {values: [" +
          values + "], when: optimizer.type == \"sgd\"}\n",
      plan);
  REQUIRE(found.told.size() == 1);
  CHECK(found.told.front().starts_with("it does not fit, in the variant optimizer.type=sgd "));
}

TEST_CASE("a violated constraint on derived keys is reported with its location", "[sweep]") {
  const Seen found = seen(
      "  parameters: {training.micro_batch_size: {values: [16, 64]}}\n"
      "  constraints: training.global_batch_size < 50");
  CHECK(found.told ==
        std::vector<std::string>{"the constraint uses derived keys and is violated after they are resolved, in "
                                 "the variant training.micro_batch_size=64"});
}

TEST_CASE("a list of very many values is looked at here and there", "[sweep]") {
  std::string values;
  for (int i = 0; i < 20'000; ++i) values += std::to_string(i) + ", ";
  const Seen found = seen("  n_trials: 3\n  parameters: {seed: {values: [" + values + "]}}");
  CHECK_FALSE(found.preflight.all);
  CHECK(found.preflight.checked < 2 * runner::sweep::kVariantsMax);
}

TEST_CASE("parameters and constraints without effect are reported", "[sweep]") {
  struct Case {
    const char *name, *sweep, *told;
  };
  const Case cases[] = {
      {"a condition that never holds",
       "  parameters: {seed: {values: [1, 2]}, optimizer.lr: {values: [1, 2], when: seed > 2}}",
       "the condition of optimizer.lr is true in no variant"},
      {"more trials than variants", "  n_trials: 5\n  parameters: {seed: {values: [1, 2]}}",
       "n_trials is 5, but the space has 2 variants: some repeat, with the same result"},
      {"a constraint of another kind", "  parameters: {seed: {values: [1, 2]}}\n  constraints: run_name > 3",
       "the constraint excludes nothing"},
      {"a constraint that divides by zero", "  parameters: {seed: {values: [1, 2]}}\n  constraints: 1 / 0 > seed",
       "the constraint excludes nothing"},
      {"a constraint that is no comparison", "  parameters: {seed: {values: [1, 2]}}\n  constraints: seed + 1",
       "the constraint excludes nothing"},
      {"a variable that nothing refers to", "  parameters: {vars.other: {values: [1, 2]}}",
       "vars.other has no effect on training"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(seen(c.sweep).told == std::vector<std::string>{c.told}); }
  }
  CHECK(seen("  parameters: {vars.width: {values: [8, 16]}}\n  constraints: vars.width < 32").told.empty());
}
