#include "runner/sweep/analysis/regret.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "runner/sweep/limits.h"
#include "tests/runner/cli/sweep_fixture.h"
#include "tests/support/sweeps.h"

namespace {

using namespace runner::sweep;

constexpr int kTrialsMax = 60;
constexpr const char* kSpace =
    "  parameters:\n"
    "    optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}\n"
    "    optimizer.weight_decay: {min: 0, max: 1}\n";

/// A learning rate of 0.003 and a weight decay of 0.4 are the best.
double bowl(const Point& point) { return std::pow(std::log10(point[0]) + 2.5, 2) + std::pow(point[1] - 0.4, 2); }

/// How many trials that come to `value` there are, one after the other, until a limit is reached; 0: never.
template <typename Value>
int stops_after(const std::string& limit, Value value) {
  const tests::TempDir dir;
  const auto open = cli_test::open_sweep(dir.path(), "  sampler: sobol\n" + std::string(kSpace) + limit);
  RegretMonitor kept(open.sweep);
  StudyCounters counters(open.sweep);
  std::vector<components::sampler::Observation> observations;
  for (int count = 1; count <= kTrialsMax; ++count) {
    observations.resize(static_cast<std::size_t>(count - 1));
    const Point point = *open.sweep.sampler().propose(observations);
    cli_test::add_trial(open, point, {.value = value(point)});
    const std::string reason = reached_limit(open.sweep, *open.study, counters.update(*open.study), 0, kept);
    RegretMonitor rebuilt(open.sweep);  // of a worker that continues after another was killed
    CHECK(reached_limit(open.sweep, *open.study, counters.update(*open.study), 0, rebuilt) == reason);
    if (!reason.empty()) return count;
  }
  return 0;
}

std::string problem(const std::string& section) {
  runner::core::Diagnostics diagnostics;
  tests::read_sweep(section, diagnostics);
  return runner::core::render(diagnostics);
}

}  // namespace

TEST_CASE("a sweep ends where nothing much better is likely", "[sweep][limits][regret]") {
  const std::string threshold = "  stop: {regret_bound: {threshold: 0.05, min_n_trials: 5}}\n";
  const int given = stops_after(threshold, bowl);
  CHECK(given >= 20);
  CHECK(given <= 45);
  CHECK(stops_after("  metric: {goal: maximize}\n" + threshold, [](const Point& point) { return -bowl(point); }) ==
        given);
  CHECK(stops_after(threshold, [](const Point& point) { return std::fmod(point[0] * 1e6, 1); }) == 0);
  const int shares = stops_after(
      "  stop: {regret_bound: {threshold_ratio: 0.3, warm_up_trials: 2, n_initial_trials: 4, min_n_trials: 5}}\n",
      bowl);
  CHECK(shares >= 7);
  CHECK(shares <= 50);
}

TEST_CASE("how far the regret is from the end of the sweep", "[sweep][limits][regret]") {
  CHECK(Regret{12, 30, {}, {}}.text() == "regret bound from 30 complete variants on; so far there are 12");
  CHECK(Regret{31, 30, 0.031256, 0.0015}.text() == "regret bound 0.031256, the sweep ends below 0.0015");
}

TEST_CASE("a regret bound that could never be computed is refused", "[sweep][limits][regret]") {
  const std::string lr = "  parameters: {optimizer.lr: {min: 0.1, max: 1}}\n";
  struct Case {
    const char* name;
    std::string section, message;
  };
  const Case cases[] = {
      {"choices only", "  stop: {regret_bound: {}}\n  parameters: {vars.width: {values: [8, 16]}}\n",
       "recipe.yaml:9:24: error: stop.regret_bound needs a numeric parameter, but the sweep has only choices\n"
       "    9 |   stop: {regret_bound: {}}\n"
       "      |                        ^~\n"
       "  hint: give a parameter min and max instead of values, or use stop.patience\n"},
      {"too few variants", "  n_trials: 30\n  stop: {regret_bound: {}}\n" + lr,
       "recipe.yaml:10:24: error: stop.regret_bound is judged from 30 complete variants on, which are all that "
       "n_trials 30 "
       "makes\n"
       "   10 |   stop: {regret_bound: {}}\n"
       "      |                        ^~\n"
       "  hint: raise n_trials, or lower min_n_trials, and give a threshold\n"},
      {"two thresholds", "  n_trials: 50\n  stop: {regret_bound: {threshold: 0.1, threshold_ratio: 0.1}}\n" + lr,
       "recipe.yaml:10:41: error: sweep.stop.regret_bound.threshold_ratio and sweep.stop.regret_bound.threshold (line "
       "10) "
       "are mutually exclusive\n"
       "   10 |   stop: {regret_bound: {threshold: 0.1, threshold_ratio: 0.1}}\n"
       "      |                                         ^~~~~~~~~~~~~~~\n"
       "  hint: keep one of them\n"},
      {"several objectives",
       "  n_trials: 50\n  stop: {regret_bound: {}}\n  objectives: [{name: val/loss}, {name: val/loss, take: best}]\n" +
           lr,
       "recipe.yaml:11:15: error: stop.target, stop.patience, stop.regret_bound and checkpoints.keep_best need a "
       "single "
       "best variant, but the sweep has several objectives\n"
       "   11 |   objectives: [{name: val/loss}, {name: val/loss, take: best}]\n"
       "      |               ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
       "  hint: remove them, or use a single sweep.metric\n"},
      {"a population", "  population: {size: 2, interval: 1}\n  stop: {regret_bound: {}}\n" + lr,
       "recipe.yaml:9:15: error: stop.regret_bound needs independent variants, but members of a population resume "
       "from each other\n"
       "    9 |   population: {size: 2, interval: 1}\n"
       "      |               ^~~~~~~~~~~~~~~~~~~~~~\n"
       "  hint: remove one of them\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(problem(c.section) == c.message); }
  }
}
