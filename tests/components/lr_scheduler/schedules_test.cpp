#include <catch2/catch.hpp>
#include <string>

#include "components/lr_scheduler/lr_scheduler.h"
#include "runner/core/error.h"
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
      {"constant without warm-up", "constant", 0, 1.0},
      {"constant climbs", "{type: constant, warmup_steps: 4}", 1, 0.25},
      {"constant stays", "{type: constant, warmup_steps: 4}", 4, 1.0},
      {"a ratio of the total", "{type: linear, total_steps: 30, warmup_ratio: 0.1}", 2, 2.0 / 3.0},
      {"a ratio is rounded up", "{type: linear, total_steps: 25, warmup_ratio: 0.1}", 2, 2.0 / 3.0},
      {"a ratio for constant", "{type: constant, total_steps: 40, warmup_ratio: 0.1}", 1, 0.25},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      CHECK(build(block("lr_scheduler", c.recipe), {})->factor(c.step) == Approx(c.factor).margin(1e-12));
    }
  }
}

TEST_CASE("a ratio of an unknown length is refused", "[lr_scheduler]") {
  const auto node = block("lr_scheduler", "{type: constant, warmup_ratio: 0.1}");
  CHECK_THROWS_WITH(build(node, {}),
                    "lr_scheduler.warmup_ratio is a share of total_steps, which training does not settle");
}
