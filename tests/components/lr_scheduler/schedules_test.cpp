#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "components/lr_scheduler/lr_scheduler.h"
#include "runner/core/error.h"
#include "tests/components/callback/fake_run.h"
#include "tests/support/blocks.h"

using components::lr_scheduler::build;
using tests::block;

TEST_CASE("schedules follow their published curves", "[lr_scheduler]") {
  struct Case {
    const char* name;
    const char* recipe;
    std::int64_t step;
    double factor;
  };
  // By hand: linear from transformers, cosine from SGDR's eq. 5.
  static constexpr const char* kCosine = "{type: cosine, total_steps: 100, warmup_steps: 20, min_lr_ratio: 0.1}";
  static constexpr const char* kLinear = "{type: linear, total_steps: 100, warmup_steps: 20, min_lr_ratio: 0.1}";
  static constexpr const char* kChain =
      "{type: chained, milestones: [4], schedulers: [{type: ramp, total_steps: 4, start_factor: 0.25}, {type: "
      "exponential, gamma: 0.5}]}";
  static constexpr Case cases[] = {
      {"cosine starts at zero", kCosine, 0, 0.0},
      {"cosine climbs linearly", kCosine, 10, 0.5},
      {"cosine peaks after the warm-up", kCosine, 20, 1.0},
      {"cosine is half-way down in the middle", kCosine, 60, 0.55},
      {"cosine reaches the floor", kCosine, 100, 0.1},
      {"cosine stays there", kCosine, 1000, 0.1},
      {"cosine climbs again when told", "{type: cosine, total_steps: 100, hold_floor: false}", 150, 0.5},
      {"linear climbs", kLinear, 10, 0.5},
      {"linear peaks after the warm-up", kLinear, 20, 1.0},
      {"linear is half-way down in the middle", kLinear, 60, 0.55},
      {"linear reaches the floor and stays", kLinear, 1000, 0.1},
      {"linear ends with its warm-up", "{type: linear, total_steps: 4, warmup_steps: 4}", 4, 0.0},
      {"cosine that is all warm-up", "{type: cosine, total_steps: 4, warmup_steps: 4}", 3, 0.75},
      {"constant without warm-up", "constant", 0, 1.0},
      {"constant climbs", "{type: constant, warmup_steps: 4}", 1, 0.25},
      {"constant stays", "{type: constant, warmup_steps: 4}", 4, 1.0},
      {"a ratio of the total", "{type: linear, total_steps: 30, warmup_ratio: 0.1}", 2, 2.0 / 3.0},
      {"a ratio is rounded up", "{type: linear, total_steps: 25, warmup_ratio: 0.1}", 2, 2.0 / 3.0},
      {"a step drops", "{type: step, step_size: 10, gamma: 0.5}", 29, 0.25},
      {"a milestone named twice counts twice", "{type: multi_step, milestones: [3, 7, 7], gamma: 0.5}", 7, 0.125},
      {"exponential", "{type: exponential, gamma: 0.5}", 3, 0.125},
      {"polynomial", "{type: polynomial, total_steps: 10, power: 2, min_lr_ratio: 0.2}", 5, 0.4},
      {"polynomial stays at its floor", "{type: polynomial, total_steps: 10, min_lr_ratio: 0.2}", 50, 0.2},
      {"a hard restart", "{type: cosine_with_restarts, total_steps: 10, num_cycles: 2}", 5, 1.0},
      {"the end of the last cycle", "{type: cosine_with_restarts, total_steps: 10, num_cycles: 2}", 10, 0.0},
      {"a warm restart", "{type: warm_restarts, cycle_steps: 3, cycle_mult: 2}", 9, 1.0},
      {"within the third cycle", "{type: warm_restarts, cycle_steps: 3, cycle_mult: 2, min_lr_ratio: 0.5}", 15, 0.75},
      {"inverse root after the warm-up", "{type: inverse_sqrt, warmup_steps: 4}", 16, 0.5},
      {"inverse root without one", "{type: inverse_sqrt, timescale: 100}", 300, 0.5},
      {"one cycle begins low", "{type: one_cycle, total_steps: 100, div_factor: 10}", 0, 0.1},
      {"one cycle peaks", "{type: one_cycle, total_steps: 100}", 29, 1.0},
      {"one cycle holds its end", "{type: one_cycle, total_steps: 100, anneal_strategy: linear}", 100000, 4e-6},
      {"one cycle does not rise after its end", "{type: one_cycle, total_steps: 5}", 5, 4e-6},
      {"wsd stays", "{type: wsd, total_steps: 100, warmup_steps: 10, decay_ratio: 0.2}", 80, 1.0},
      {"wsd falls", "{type: wsd, total_steps: 100, decay_ratio: 0.2, min_lr_ratio: 0.1}", 90, 0.55},
      {"wsd falls as a root", "{type: wsd, total_steps: 100, decay_ratio: 0.2, decay: sqrt}", 85, 0.5},
      {"wsd falls as a cosine", "{type: wsd, total_steps: 100, decay_ratio: 0.2, decay: cosine}", 90, 0.5},
      {"a ramp", "{type: ramp, total_steps: 4, start_factor: 0.2}", 2, 0.6},
      {"the first of a chain", kChain, 3, 0.8125},
      {"the second begins at its own step 0", kChain, 4, 1.0},
      {"and goes on", kChain, 6, 0.25},
      {"megatron's warm-up need not be whole", "{type: megatron, total_steps: 12, warmup_ratio: 0.125}", 1, 2.0 / 3.0},
      {"megatron starts where told", "{type: megatron, total_steps: 9, warmup_steps: 2, init_lr_ratio: 0.5}", 1, 0.75},
      {"megatron's root without a warm-up counts samples",
       "{type: megatron, total_steps: 9, decay_style: inverse-square-root, samples_per_step: 4}", 4, 0.25},
      {"megatron's root falls to the floor",
       "{type: megatron, total_steps: 9, decay_style: inverse-square-root, min_lr_ratio: 0.01}", 10, 0.01},
      {"deepspeed climbs as a logarithm", "{type: deepspeed, warmup_steps: 16, total_steps: 20}", 3, 0.5},
      {"deepspeed stays", "{type: deepspeed, warmup_steps: 16, total_steps: 20}", 900, 1.0},
      {"deepspeed falls to its floor",
       "{type: deepspeed, decay: linear, warmup_steps: 5, total_steps: 15, warmup_min_ratio: 0.2}", 10, 0.6},
      {"a ratio for constant", "{type: constant, total_steps: 40, warmup_ratio: 0.1}", 1, 0.25},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      CHECK(build(block("lr_scheduler", c.recipe), {})->factor(c.step) == Approx(c.factor).margin(1e-12));
    }
  }
}

TEST_CASE("a plateau lowers the rate", "[lr_scheduler][plateau]") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    const char* name;
    std::string keys;
    std::vector<double> values, factors;  // after each evaluation
  };
  // By hand from torch's ReduceLROnPlateau.
  const Case cases[] = {
      {"after patience", "patience: 1, factor: 0.5", {3, 3, 3, 3, 3}, {1, 1, 0.5, 0.5, 0.25}},
      {"NaN is no improvement", "patience: 0, factor: 0.5", {kNan, 3, kNan, 2}, {0.5, 0.5, 0.25, 0.25}},
      {"a share of the best", "patience: 0, factor: 0.5, threshold: 0.1", {10, 9.5, 8.9}, {1, 0.5, 0.5}},
      {"a difference to the best",
       "patience: 0, factor: 0.5, threshold: 0.1, threshold_mode: abs",
       {10, 9.95, 9.8},
       {1, 0.5, 0.5}},
      {"more is better", "patience: 0, factor: 0.5, mode: max", {1, 2, 1, 3}, {1, 1, 0.5, 0.5}},
      {"a cooldown is not counted", "patience: 0, factor: 0.5, cooldown: 2", {3, 3, 3, 3, 3}, {1, 0.5, 0.5, 0.5, 0.25}},
      {"not below the floor", "patience: 0, factor: 0.1, min_lr_ratio: 0.4", {3, 3, 3}, {1, 0.4, 0.4}},
      {"a small change is not made", "patience: 0, factor: 0.5, eps: 0.3", {3, 3, 3}, {1, 0.5, 0.5}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto node = block("lr_scheduler", "{type: plateau, monitor: val/loss, " + c.keys + "}");
      auto schedule = build(node, {});
      std::vector<double> factors;
      for (const double value : c.values) {
        schedule->on_evaluation([&value](const std::string&) { return &value; });
        factors.push_back(schedule->factor(0));
        const auto resumed = build(node, {});  // the state changes hands after every one
        tests::hand_over_state(*schedule, *resumed);
        schedule = resumed;
      }
      for (std::size_t i = 0; i < factors.size(); ++i) CHECK(factors[i] == Approx(c.factors[i]));
    }
  }
}

TEST_CASE("a plateau of a metric that is not there is refused", "[lr_scheduler][plateau]") {
  runner::core::Diagnostics diagnostics;
  const std::vector<std::string> names{"loss", "val/loss"};
  const auto node = block("lr_scheduler", "{type: plateau, monitor: val/los}");
  CHECK(build(node, {&diagnostics, &names, node.find("monitor")->location()}) == nullptr);
  CHECK(runner::core::render(diagnostics, {.color = false, .excerpts = false}) ==
        "lr_scheduler.yaml:1:26: error: no metric of this recipe is called \"val/los\"\n"
        "  hint: did you mean \"val/loss\"?\n");
}

TEST_CASE("one cycle moves the momentum against the rate", "[lr_scheduler]") {
  const auto cycle = build(block("lr_scheduler", "{type: one_cycle, total_steps: 10, cycle_momentum: true}"), {});
  CHECK(cycle->schedules_momentum());
  CHECK(cycle->momentum(0) == Approx(0.95));
  CHECK(cycle->momentum(2) == Approx(0.85));
  const auto chain = build(block("lr_scheduler",
                                 "{type: chained, milestones: [3], schedulers: [constant, {type: one_cycle, "
                                 "total_steps: 10, cycle_momentum: true}]}"),
                           {});
  CHECK(chain->schedules_momentum());
  CHECK_FALSE(chain->momentum(2));
  CHECK(chain->momentum(5) == Approx(0.85));
  CHECK_FALSE(build(block("lr_scheduler", "{type: one_cycle, total_steps: 10}"), {})->schedules_momentum());
}

TEST_CASE("a ratio of an unknown length is refused", "[lr_scheduler]") {
  const auto node = block("lr_scheduler", "{type: constant, warmup_ratio: 0.1}");
  CHECK_THROWS_WITH(build(node, {}), "lr_scheduler.warmup_ratio is a fraction of total_steps, which is unknown");
}

TEST_CASE("a chain that does not fit together is refused at its place", "[lr_scheduler]") {
  struct Case {
    const char* recipe;
    const char* message;
  };
  static constexpr Case cases[] = {
      {"{type: chained, schedulers: [{type: linear}]}",
       "lr_scheduler.yaml:1:30: error: a chained linear needs its own total_steps\n"
       "  hint: write `total_steps:` in this block\n"},
      {"{type: chained, schedulers: [{type: step, step_size: 3, step_with_optimizer: false}]}",
       "lr_scheduler.yaml:1:78: error: step_with_optimizer belongs to the whole chain\n"
       "  hint: write it next to `type: chained`\n"},
      {"{type: chained, schedulers: [{type: plateau, monitor: val/loss}]}",
       "lr_scheduler.yaml:1:30: error: plateau depends on evaluations and cannot be part of a chain\n"
       "  hint: use `type: plateau` by itself\n"},
  };
  for (const Case& c : cases) {
    runner::core::Diagnostics diagnostics;
    CHECK(build(block("lr_scheduler", c.recipe), {&diagnostics}) == nullptr);
    CHECK(runner::core::render(diagnostics, {.color = false, .excerpts = false}) == c.message);
  }
}
