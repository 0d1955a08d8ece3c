#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "components/pruner/pruner.h"
#include "runner/core/json.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"

using components::pruner::Curve;
using components::pruner::Pruner;
using components::pruner::Report;
using runner::core::Node;

namespace {

std::shared_ptr<Pruner> build(const Node& block, bool maximize = false) {
  runner::core::Diagnostics diagnostics;
  const Node checked = runner::registry::validate_component(block, "pruner", "pruner",
                                                            runner::registry::Registry::builtin(), diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE_FALSE(diagnostics.has_errors());
  return components::pruner::build(checked, {maximize, 10'000});
}

std::shared_ptr<Pruner> build(const std::string& json, bool maximize = false) {
  return build(runner::core::parse_json(json).value(), maximize);
}

Curve curve(std::int64_t trial, std::vector<double> values, bool complete = true) {
  Curve made{trial, complete ? Curve::State::kComplete : Curve::State::kPruned, {}};
  for (const double value : values) {
    made.reports.push_back({static_cast<std::int64_t>(10 * (made.reports.size() + 1)), value});
  }
  return made;
}

/// Learning curves that cross: the value of trial `i` at step `s`.
double table(std::int64_t i, std::int64_t s) {
  const double level = static_cast<double>((i * 37) % 64) / 64, pace = 1 + static_cast<double>((i * 11) % 7);
  return level + std::exp(-static_cast<double>(s) * pace / 200);
}

/// Trials one after the other over the table; the step at which each one stops.
std::vector<std::int64_t> stops(Pruner& pruner, std::int64_t trials, std::int64_t steps) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < trials; ++i) {
    Curve mine{i, Curve::State::kComplete, {}};
    for (std::int64_t s = 1; s <= steps; ++s) {
      mine.reports.push_back({s, table(i, s)});
      if (!pruner.should_prune(mine)) continue;
      mine.state = Curve::State::kPruned;
      break;
    }
    list.push_back(mine.reports.back().step);
    pruner.record(mine);
  }
  return list;
}

/// Successive halving as one would write it down: a list of values for each rung.
std::vector<std::int64_t> halved(const std::vector<std::int64_t>& trials, std::int64_t first, std::int64_t factor,
                                 std::int64_t steps) {
  std::map<std::int64_t, std::vector<double>> rungs;
  std::vector<std::int64_t> list;
  for (const std::int64_t i : trials) {
    std::int64_t stopped = steps;
    for (std::int64_t rung = first; rung <= steps; rung *= factor) {
      std::vector<double>& there = rungs[rung];
      there.push_back(table(i, rung));
      std::vector<double> sorted = there;
      std::sort(sorted.begin(), sorted.end());
      const std::size_t kept = std::max<std::size_t>(1, sorted.size() / static_cast<std::size_t>(factor));
      if (table(i, rung) <= sorted[kept - 1]) continue;
      stopped = rung;
      break;
    }
    list.push_back(stopped);
  }
  return list;
}

}  // namespace

TEST_CASE("every example of a pruner builds", "[pruner]") {
  const auto& registry = runner::registry::Registry::builtin();
  for (const std::string& name : registry.names("pruner")) {
    for (const Node& example : registry.find("pruner", name)->examples) CHECK(build(example) != nullptr);
  }
}

TEST_CASE("ASHA stops trials where halving by hand does", "[pruner][asha]") {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < 60; ++i) all.push_back(i);
  const auto pruner = build(R"({"type": "asha", "min_steps": 3, "reduction_factor": 3})");
  CHECK(stops(*pruner, 60, 100) == halved(all, 3, 3, 100));
}

TEST_CASE("Hyperband halves each bracket by itself", "[pruner][hyperband]") {
  // From 3 to 81 steps by 3: four brackets of ceil(4 * 3^s / (s + 1)) trials, s from 3 to 0, as Optuna counts them.
  const std::vector<std::int64_t> sizes = {27, 12, 6, 4}, firsts = {3, 9, 27, 81};
  const auto pruner = build(R"({"type": "hyperband", "min_steps": 3, "max_steps": 81})");
  const auto stopped = stops(*pruner, 2 * 49, 81);
  std::vector<std::vector<std::int64_t>> brackets(4);
  for (std::int64_t i = 0; i < 2 * 49; ++i) {
    std::size_t bracket = 0;
    for (std::int64_t left = i % 49; left >= sizes[bracket]; ++bracket) left -= sizes[bracket];
    brackets[bracket].push_back(i);
  }
  for (std::size_t b = 0; b < brackets.size(); ++b) {
    std::vector<std::int64_t> here;
    for (const std::int64_t i : brackets[b]) here.push_back(stopped[static_cast<std::size_t>(i)]);
    CHECK(here == halved(brackets[b], firsts[b], 3, 81));
  }
}

TEST_CASE("a pruner gives up whom its rule names", "[pruner]") {
  struct Case {
    const char *name, *pruner;
    Curve mine;
    std::vector<Curve> others;
    bool should_prune;
  };
  const std::vector<Curve> five = {curve(0, {5, 1}), curve(1, {5, 2}), curve(2, {5, 3}), curve(3, {5, 4}),
                                   curve(4, {5, 5})};
  const Case cases[] = {
      {"behind the median", R"({"type": "median"})", curve(9, {5, 3.1}), five, true},
      {"at the median", R"({"type": "median"})", curve(9, {5, 3}), five, false},
      {"the best so far counts", R"({"type": "median"})", curve(9, {2, 4}), five, false},
      {"too few complete trials", R"({"type": "median", "n_startup_trials": 6})", curve(9, {5, 9}), five, false},
      {"trials that were given up do not count",
       R"({"type": "median", "n_startup_trials": 1})",
       curve(9, {5, 9}),
       {curve(0, {5, 1}, false)},
       false},
      {"still warming up", R"({"type": "median", "n_warmup_steps": 20})", curve(9, {5, 9}), five, false},
      {"no other trial was there", R"({"type": "median"})", curve(9, {5, 5, 5}), five, false},
      // numpy.percentile([1, 2, 3, 4, 5], 30) = 2.2
      {"behind a percentile", R"({"type": "percentile", "percentile": 30})", curve(9, {5, 2.21}), five, true},
      {"before a percentile", R"({"type": "percentile", "percentile": 30})", curve(9, {5, 2.19}), five, false},
      {"no progress", R"({"type": "patience", "patience": 1})", curve(9, {3, 2, 2.5, 2.1}), {}, true},
      {"some progress", R"({"type": "patience", "patience": 1})", curve(9, {3, 2, 2.5, 1.9}), {}, false},
      {"not much worse",
       R"({"type": "patience", "patience": 1, "min_delta": 0.2})",
       curve(9, {3, 2, 2.5, 2.1}),
       {},
       false},
      {"too early to say", R"({"type": "patience", "patience": 2})", curve(9, {1, 2, 3}), {}, false},
      {"no progress, and the other one agrees", R"({"type": "patience", "patience": 0, "pruner": {"type": "median"}})",
       curve(9, {3.5, 4}), five, true},
      {"no progress, and the other one does not",
       R"({"type": "patience", "patience": 0, "pruner": {"type": "median"}})", curve(9, {2, 4}), five, false},
      {"beyond a bound", R"({"type": "threshold", "upper": 2})", curve(9, {1, 2.5}), {}, true},
      {"within the bounds", R"({"type": "threshold", "lower": 1, "upper": 2})", curve(9, {9, 1.5}), {}, false},
      {"no number", R"({"type": "threshold", "upper": 2})", curve(9, {NAN}), {}, true},
      {"no number at a rung", R"({"type": "asha", "min_steps": 10})", curve(9, {NAN}), {}, true},
      {"the first at a rung goes on", R"({"type": "asha", "min_steps": 10})", curve(9, {7}), {}, false},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto pruner = build(std::string(c.pruner));
      for (const Curve& other : c.others) pruner->record(other);
      CHECK(pruner->should_prune(c.mine) == c.should_prune);
    }
  }
}

TEST_CASE("bounds are those of the metric, whatever the goal", "[pruner][threshold]") {
  const auto pruner = build(std::string(R"({"type": "threshold", "lower": 0.5})"), true);
  CHECK(pruner->should_prune(curve(0, {-0.4})));
  CHECK_FALSE(pruner->should_prune(curve(0, {-0.6})));
}
