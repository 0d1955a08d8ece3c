#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "components/sampler/math/grid_points.h"
#include "tests/support/sweeps.h"

using runner::core::Diagnostics;
using runner::sweep::Point;
using tests::read_sweep;

namespace {

/// `message (hint)` of each, in order.
std::vector<std::string> complaints(const std::string& sweep) {
  Diagnostics diagnostics;
  CHECK_FALSE(read_sweep(sweep, diagnostics).has_value());
  std::vector<std::string> list;
  for (const auto& one : diagnostics.all()) {
    CHECK(one.location.known());
    list.push_back(one.message + " (" + one.hint + ")");
  }
  return list;
}

/// Every variant of a finite space, as words.
std::vector<std::string> variants(const std::string& sweep) {
  Diagnostics diagnostics;
  const auto read = read_sweep(sweep, diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(read.has_value());
  std::vector<std::string> list;
  components::sampler::for_each_grid_point(read->space(), [&](const Point& point) {
    list.push_back(read->space().text(point));
    return true;
  });
  return list;
}

}  // namespace

TEST_CASE("each error in a sweep is reported at its location", "[sweep]") {
  struct Case {
    const char *name, *sweep;
    std::vector<std::string> complaints;
  };
  const Case cases[] = {
      {"an empty range",
       "  parameters: {optimizer.lr: {min: 1.0, max: 0.1}}",
       {"optimizer.lr has min 1.0 and max 0.1 (min must be less than max; put a single value into the recipe)"}},
      {"a logarithm of nothing",
       "  parameters: {optimizer.lr: {distribution: log_uniform, min: 0, max: 0.1}}",
       {"optimizer.lr has min 0, which has no logarithm (use a min above 0, or a distribution without log_)"}},
      {"half a range",
       "  parameters: {optimizer.lr: {min: 0.1}}",
       {"optimizer.lr has no max (give values: [...], or min and max)"}},
      {"no values",
       "  parameters: {optimizer.lr: {}}",
       {"optimizer.lr has no values (give values: [...], or min and max)"}},
      {"integers that are none",
       "  parameters: {vars.width: {distribution: int, min: 1, max: 4.5}}",
       {"vars.width is an integer, but max is 4.5 (distribution: uniform)"}},
      {"a normal distribution with an end",
       "  parameters: {optimizer.lr: {distribution: normal, max: 1}}",
       {"optimizer.lr has a max, but a normal distribution is unbounded (give mu and sigma, or distribution: "
        "uniform)"}},
      {"steps beyond the end",
       "  parameters: {vars.width: {min: 1, max: 4, q: 8}}",
       {"vars.width has steps of 8, which leaves only min (use a smaller q)"}},
      {"a value twice",
       "  parameters: {vars.width: {values: [8, 16, 8]}}",
       {"vars.width has the value 8 twice (keep one of them)"}},
      {"a key that there is not",
       "  parameters: {optimiser.lr: {values: [1, 2]}}",
       {"a recipe has no key \"optimiser\" (did you mean \"optimizer\"?)"}},
      {"what is the sweep's own",
       "  parameters: {run_name: {values: [a, b]}}",
       {"run_name cannot be swept (each trial has its own run_name, and all share the output_dir)"}},
      {"one path twice",
       "  paired: [{vars.width: 1}, {vars.width: 2}]\n  parameters: {vars.width: {values: [8, 16]}}",
       {"vars.width is swept twice (keep one of them)"}},
      {"pairs that do not match",
       "  paired: [{vars.width: 1, optimizer.lr: 1}, {vars.width: 2}]",
       {"each entry of paired sets the same keys: vars.width, optimizer.lr ()"}},
      {"a condition on what comes later",
       "  parameters:\n    optimizer.lr: {values: [1, 2], when: vars.width > 8}\n    vars.width: {values: [8, 16]}",
       {"the condition reads vars.width, which is defined later (put vars.width before it)"}},
      {"a condition on nothing",
       "  parameters: {optimizer.lr: {values: [1, 2], when: optimizer.sort == 3}}",
       {"there is no optimizer.sort in this recipe, and no earlier parameter sets it (use a path such as "
        "optimizer.type, or an earlier parameter)"}},
      {"a constraint that is none",
       "  parameters: {vars.width: {values: [1, 2]}}\n  constraints: vars.width <",
       {"expected a value at column 13, got the end (the rule is `vars.width <`)"}},
      {"a grid without an end",
       "  sampler: grid\n  parameters: {optimizer.lr: {min: 0.1, max: 0.2}}",
       {"a grid tries all values, but optimizer.lr has infinitely many (give it values: [...] or steps of q, or use "
        "another sampler)"}},
      {"no end at all",
       "  parameters: {optimizer.lr: {min: 0.1, max: 0.2}}",
       {"the number of variants to try is not set (add --n-trials 20, or sweep.n_trials)"}},
      {"a variant that is none",
       "  sampler: {type: list, points: [{vars.width: 9}, {vars.width: 8, optimizer.lr: 1}, {}]}\n"
       "  parameters: {vars.width: {values: [8, 16]}}",
       {"this point is not in the search space: vars.width has no value 9 (each sets a value for every active "
        "parameter)",
        "this point is not in the search space: it sets inactive parameters: vars.width=8 (each sets a value for every "
        "active parameter)",
        "this point is not in the search space: it has no value for vars.width (each sets a value for every active "
        "parameter)"}},
      {"several seeds of several seeds",
       "  replicates: 2\n  parameters: {seed: {values: [1, 2]}}",
       {"seed is swept, but replicates already trains each variant with several seeds (remove one of the two)"}},
      {"two ways to write one path",
       "  parameters: {optimizer.lr: {values: [1]}, 'optimizer[\"lr\"]': {values: [2]}}",
       {"optimizer[\"lr\"] is swept twice (keep one of them)"}},
      {"a variable that nothing could refer to",
       "  parameters: {vars.widht: {values: [8, 16]}}",
       {"vars has no \"widht\" (did you mean \"width\"?)"}},
      {"a pair twice",
       "  paired: [{vars.width: 8}, {vars.width: 8}]",
       {"paired has this entry twice (keep one of them)"}},
      {"integers that a double does not hold",
       "  n_trials: 2\n  parameters: {seed: {min: 0, max: 1e30}}",
       {"seed is an integer, but max is 1e30, beyond 2^53 (give values: [...], or a smaller range)"}},
      {"a mean that was meant to be the value's",
       "  n_trials: 2\n  parameters: {optimizer.lr: {distribution: log_normal, mu: 1000}}",
       {"optimizer.lr exceeds the range of numbers (mu and sigma of log_normal are those of the natural "
        "logarithm: mu: -7 is around 0.001)"}},
      {"a condition on a block that comes later",
       "  parameters: {optimizer.lr: {values: [1, 2], when: optimizer.type == \"sgd\"}, optimizer: {values: [sgd, "
       "adamw]}}",
       {"the condition reads optimizer.type, which is defined later (put optimizer.type before it)"}},
      {"no block at all",
       "  parameters: {optimizer.lr: 5}",
       {"sweep.parameters.optimizer.lr must be a mapping, got 5 (give its keys, indented, on the lines below)"}},
      {"a list without its key",
       "  parameters: {vars.width: [16, 32]}",
       {"sweep.parameters.vars.width must be a mapping, got a list (write {values: [16, 32]})"}},
      {"a metric without its key",
       "  metric: val/loss\n  parameters: {vars.width: {values: [8, 16]}}",
       {"sweep.metric must be a mapping, got \"val/loss\" (write metric: {name: val/loss})"}},
      {"a direction in other words",
       "  metric: {name: val/loss, goal: max}\n  parameters: {vars.width: {values: [8, 16]}}",
       {"sweep.metric.goal must be minimize or maximize, got \"max\" (did you mean \"maximize\"?)"}},
      {"a direction under another key",
       "  direction: maximize\n  parameters: {vars.width: {values: [8, 16]}}",
       {"sweep has no key \"direction\" (sweep.metric.goal says minimize or maximize)"}},
      {"all mistakes at once",
       "  metric: {name: val/los}\n  parameters: {vars.width: {values: [8, 8]}, optimizer.lr: {min: 2}}",
       {"sweep.metric.name is val/los, but only loss is measured (did you mean val/loss?)",
        "vars.width has the value 8 twice (keep one of them)",
        "optimizer.lr has no max (give values: [...], or min and max)"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(complaints(c.sweep) == c.complaints); }
  }
}

TEST_CASE("a finite space is walked through in order", "[sweep]") {
  struct Case {
    const char *name, *sweep;
    std::vector<std::string> variants;
  };
  const Case cases[] = {
      {"values and steps",
       "  parameters: {optimizer.lr: {values: [0.1, 0.2]}, vars.width: {min: 4, max: 12, q: 4}}",
       {"optimizer.lr=0.1 vars.width=4", "optimizer.lr=0.1 vars.width=8", "optimizer.lr=0.1 vars.width=12",
        "optimizer.lr=0.2 vars.width=4", "optimizer.lr=0.2 vars.width=8", "optimizer.lr=0.2 vars.width=12"}},
      {"pairs",
       "  paired: [{optimizer.type: adamw, optimizer.lr: 0.1}, {optimizer.type: sgd, optimizer.lr: 0.5}]",
       {"optimizer.type=adamw optimizer.lr=0.1", "optimizer.type=sgd optimizer.lr=0.5"}},
      {"a condition",
       "  parameters:\n    optimizer.type: {values: [adamw, sgd]}\n"
       "    optimizer.momentum: {values: [0.0, 0.9], when: optimizer.type == \"sgd\"}",
       {"optimizer.type=adamw", "optimizer.type=sgd optimizer.momentum=0.0",
        "optimizer.type=sgd optimizer.momentum=0.9"}},
      {"a constraint",
       "  parameters: {vars.width: {min: 1, max: 3}, training.max_steps: {min: 1, max: 3}}\n"
       "  constraints: vars.width * training.max_steps == 3",
       {"vars.width=1 training.max_steps=3", "vars.width=3 training.max_steps=1"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(variants(c.sweep) == c.variants); }
  }
}

TEST_CASE("what refers to a variable follows it", "[sweep]") {
  struct Case {
    const char *name, *sweep;
    std::vector<std::string> variants;
  };
  const Case cases[] = {
      {"in a constraint",
       "  parameters: {vars.width: {values: [4, 8, 16]}}\n  constraints: 'model.hidden[0] != 8'",
       {"vars.width=4", "vars.width=16"}},
      {"in a condition",
       "  parameters: {vars.width: {values: [4, 8]}, optimizer.lr: {values: [1, 2], when: 'model.hidden[0] < 8'}}",
       {"vars.width=4 optimizer.lr=1", "vars.width=4 optimizer.lr=2", "vars.width=8"}},
      {"from a value",
       "  parameters: {vars.other: {values: [1, 2]}, optimizer.lr: {values: [5, '${vars.other}']}}\n"
       "  constraints: optimizer.lr > 1",
       {"vars.other=1 optimizer.lr=5", "vars.other=2 optimizer.lr=5", "vars.other=2 optimizer.lr=${vars.other}"}},
      {"through another variable",
       "  parameters: {vars.other: {values: [4, 16]}, vars.width: {values: ['${vars.other}']}}\n"
       "  constraints: 'model.hidden[0] > 8'",
       {"vars.other=16 vars.width=${vars.other}"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(variants(c.sweep) == c.variants); }
  }
  Diagnostics diagnostics;
  const auto sweep = read_sweep(
      "  paired: [{vars.other: 1, optimizer: {type: sgd, lr: '${vars.width}'}}, {vars.other: 2, optimizer: adamw}]\n"
      "  parameters: {vars.width: {values: [3, 5]}}",
      diagnostics);
  REQUIRE(sweep.has_value());
  CHECK(sweep->variant({0, 1}, diagnostics)->at("optimizer.lr").as_double() == 5);
}

TEST_CASE("the words of a variant say what its values are", "[sweep]") {
  CHECK(variants("  parameters: {vars.other: {values: [1, '1', \"a\\nb\", \"\\e[31m\", ~, '', '~', a b, [1, '1']]}}") ==
        std::vector<std::string>{"vars.other=1", "vars.other=\"1\"", "vars.other=\"a\\nb\"",
                                 "vars.other=\"\\u001b[31m\"", "vars.other=~", "vars.other=\"\"", "vars.other=\"~\"",
                                 "vars.other=a b", "vars.other=[1, \"1\"]"});
}

TEST_CASE("a variant is the recipe with its values", "[sweep]") {
  Diagnostics diagnostics;
  const auto sweep = read_sweep(
      "  replicates: 2\n  parameters:\n    optimizer.lr: {values: [0.5]}\n    vars.width: {values: [16]}\n"
      "    optimizer.type: {values: [sgd]}",
      diagnostics);
  REQUIRE(sweep.has_value());
  runner::sweep::TrialSettings settings;
  settings.run_name = "trial";
  settings.replicate = 1;
  settings.threads = 2;
  settings.shrink = true;
  const auto trial = sweep->trial({0, 0, 0}, settings, diagnostics);
  REQUIRE(trial.has_value());
  CHECK(trial->at("model.hidden[0]").as_integer() == 16);
  CHECK(trial->at("optimizer.type").as_string() == "sgd");
  CHECK(trial->at("optimizer.lr").as_double() == 0.5);  // the new type did not take it along
  CHECK(trial->at("run_name").as_string() == "trial");
  CHECK(trial->at("seed").as_integer() == 1338);
  CHECK(trial->at("launch.num_cpu_threads_per_process").as_integer() == 2);
  CHECK(trial->at("training.auto_micro_batch").as_string() == "halve");
  CHECK(trial->at("sweep").is_null());
}

TEST_CASE("given variants come first, then another sampler's", "[sweep][sampler]") {
  Diagnostics diagnostics;
  const auto sweep = read_sweep(
      "  n_trials: 3\n  sampler: {type: list, points: [{vars.width: 12, optimizer.lr: 0.5}], then: {type: random}}\n"
      "  parameters: {vars.width: {min: 4, max: 16, q: 4}, optimizer.lr: {min: 0.1, max: 0.9}}",
      diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(sweep.has_value());
  const auto first = sweep->sampler().propose({});
  CHECK(first == Point{12, 0.5});
  const auto second = sweep->sampler().propose({{*first}});
  REQUIRE(second.has_value());
  CHECK(second != first);
  CHECK(sweep->variants_to_come() == 3);
}

TEST_CASE("a grid after given variants tries all others, each once", "[sweep][sampler]") {
  Diagnostics diagnostics;
  const auto sweep = read_sweep(
      "  sampler: {type: list, points: [{vars.width: 16}], then: {type: list, points: [{vars.width: 8}], then: grid}}\n"
      "  parameters: {vars.width: {values: [4, 8, 16, 32]}}",
      diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(sweep.has_value());
  std::vector<components::sampler::Observation> observations;
  std::vector<double> widths;
  for (auto point = sweep->sampler().propose(observations); point; point = sweep->sampler().propose(observations)) {
    widths.push_back(point->front());
    observations.push_back({*point});
  }
  CHECK(widths == std::vector<double>{2, 1, 0, 2, 3});  // the inner list knows of its own points alone
}

TEST_CASE("what is compared follows from what is monitored", "[sweep]") {
  Diagnostics diagnostics;
  const auto sweep = read_sweep(
      "  parameters: {vars.width: {values: [8, 16]}}\ncheckpoint: {monitor: val/loss, mode: max}", diagnostics);
  REQUIRE(sweep.has_value());
  CHECK(sweep->metric() == "val/loss");
  CHECK(sweep->maximizes());
}

TEST_CASE("logarithms spread evenly are of integers where the key takes them", "[sweep]") {
  using Kind = components::sampler::Dimension::Kind;
  Diagnostics diagnostics;
  const auto sweep = read_sweep(
      "  n_trials: 3\n  parameters: {optimizer.lr: {distribution: log, min: 1, max: 3}, vars.width: {distribution: "
      "log, "
      "min: 1, max: 3}}",
      diagnostics);
  REQUIRE(sweep.has_value());
  const auto& dimensions = sweep->space().dimensions();
  CHECK(dimensions[0].kind == Kind::kReal);
  CHECK(dimensions[1].kind == Kind::kInteger);
  CHECK((dimensions[0].log && dimensions[1].log));
}
