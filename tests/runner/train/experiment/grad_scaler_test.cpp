#include "runner/train/experiment/grad_scaler.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace runner::train {
namespace {

struct Case {
  const char* name;
  GradScaler::Options options;
  std::string steps;           ///< o: an overflow, .: none
  std::vector<double> scales;  ///< after each
};

/// DeepSpeed's DynamicLossScaler with the same numbers: scale_factor 2, scale_window, delayed_shift, min_scale.
const Case kCases[] = {
    {"without hysteresis", {.enabled = true, .init_scale = 16, .growth_interval = 2}, "o..o", {8, 8, 16, 8}},
    {"the second overflow lowers it",
     {.enabled = true, .init_scale = 16, .growth_interval = 2, .hysteresis = 2},
     "oo.o",
     {16, 8, 8, 4}},
    {"growth counts overflows again",
     {.enabled = true, .init_scale = 16, .growth_interval = 2, .hysteresis = 2},
     "o..oo",
     {16, 16, 32, 32, 16}},
    {"it falls to the smallest",
     {.enabled = true, .init_scale = 16, .growth_interval = 2, .min_scale = 6},
     "ooo",
     {8, 6, 6}},
    {"a fixed one stays",
     {.enabled = true, .init_scale = 128, .growth_interval = 1, .adapts = false},
     "..o.",
     {128, 128, 128, 128}},
};

}  // namespace

TEST_CASE("a loss scale falls and grows as DeepSpeed's", "[precision]") {
  for (const Case& one : kCases) {
    INFO(one.name);
    GradScaler scaler(one.options);
    std::vector<double> scales;
    for (const char step : one.steps) {
      scaler.update(step == 'o');
      scales.push_back(scaler.scale());
    }
    CHECK(scales == one.scales);
  }
}

TEST_CASE("a loss scale is stuck where an overflow cannot lower it", "[precision]") {
  GradScaler least({.enabled = true, .init_scale = 2, .hysteresis = 2, .min_scale = 1});
  std::vector<bool> stuck;
  for (int i = 0; i < 4; ++i) {
    least.update(true);
    stuck.push_back(least.is_stuck());
  }
  CHECK(stuck == std::vector<bool>{false, false, true, true});
  least.update(false);
  CHECK_FALSE(least.is_stuck());
  GradScaler fixed({.enabled = true, .init_scale = 2, .adapts = false});
  fixed.update(true);
  CHECK(fixed.is_stuck());
}

}  // namespace runner::train
