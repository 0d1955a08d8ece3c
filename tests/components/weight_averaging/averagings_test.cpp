#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/weight_averaging/weight_averaging.h"
#include "tests/support/blocks.h"

using components::weight_averaging::build;
using tests::block;

TEST_CASE("an average takes the share of the weights that its source says", "[weight_averaging]") {
  struct Case {
    const char* recipe;
    std::int64_t taken;
    double share;
  };
  static constexpr Case cases[] = {
      {"{type: ema, decay: 0.9}", 1, 0.1},
      {"{type: ema, decay: 0.9}", 1000, 0.1},
      // By hand from timm.utils.ModelEmaV3.get_decay.
      {"{type: ema, warmup_power: 0.75}", 1, 0.5946035575013605},
      {"{type: ema, warmup_power: 0.75}", 15, 0.125},
      {"{type: ema, warmup_power: 0.5, warmup_gamma: 5}", 15, 0.5},
      {"{type: ema, decay: 0.9, warmup_power: 0.75}", 100, 0.1},
      {"{type: swa, start_step: 3}", 1, 0.5},
      {"{type: swa, start_step: 3}", 4, 0.2},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.recipe << " after " << c.taken) {
      CHECK(build(block("weight_averaging", c.recipe), {})->weight_of_new(c.taken) == Approx(c.share).epsilon(1e-12));
    }
  }
}

TEST_CASE("an average is updated at its interval after its start", "[weight_averaging]") {
  const auto taken_steps = [](const char* recipe) {
    const auto averaging = build(block("weight_averaging", recipe), {});
    std::vector<std::int64_t> steps;
    for (std::int64_t step = 1; step <= 10; ++step) {
      if (averaging->should_update(step)) steps.push_back(step);
    }
    return steps;
  };
  CHECK(taken_steps("{type: ema, update_every: 4}") == std::vector<std::int64_t>{4, 8});
  CHECK(taken_steps("{type: ema, start_step: 7}") == std::vector<std::int64_t>{8, 9, 10});
  CHECK(taken_steps("{type: swa, start_step: 3, update_every: 3}") == std::vector<std::int64_t>{6, 9});
}

TEST_CASE("swa moves the rate from the schedule's to its own", "[weight_averaging]") {
  struct Case {
    const char* recipe;
    std::vector<double> rates;  ///< after steps 2, 3, ...
  };
  const Case cases[] = {
      // torch.optim.swa_utils.SWALR(SGD(lr=0.1), swa_lr=0.02, anneal_epochs=4), torch 2.11
      {"{type: swa, start_step: 2, lr: 0.02, anneal_steps: 4}",
       {0.1, 0.08828427124746191, 0.06, 0.0317157287525381, 0.02, 0.02}},
      {"{type: swa, start_step: 2, lr: 0.02, anneal_steps: 4, anneal_strategy: linear}",
       {0.1, 0.08, 0.06, 0.04, 0.02, 0.02}},
      {"{type: swa, start_step: 3, lr: 0.02}", {0.1, 0.02, 0.02}},
      {"{type: swa, start_step: 2}", {0.1, 0.1}},
      {"{type: ema}", {0.1, 0.1}},
  };
  constexpr double kBase = 0.1;
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.recipe) {
      const auto averaging = build(block("weight_averaging", c.recipe), {kBase});
      for (std::size_t i = 0; i < c.rates.size(); ++i) {
        const auto done = static_cast<std::int64_t>(i) + 2;
        CHECK(averaging->lr_factor(done, 1.0) * kBase == Approx(c.rates[i]).epsilon(1e-12));
      }
    }
  }
  // A schedule that ends is followed for as long as it counts: half of it half-way.
  const auto averaging =
      build(block("weight_averaging", "{type: swa, start_step: 0, lr: 0.1, anneal_steps: 2}"), {0.1});
  CHECK(averaging->lr_factor(1, 0.5) == Approx(0.75));
}
