#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "runner/sweep/next_variant.h"
#include "tests/support/sweeps.h"

using components::sampler::Observation;
using runner::sweep::Sweep;
using runner::sweep::Variant;

namespace {

Sweep read(const std::string& sweep) {
  runner::core::Diagnostics diagnostics;
  auto found = tests::read_sweep(sweep, diagnostics, 25);
  INFO(runner::core::render(diagnostics));
  REQUIRE(found.has_value());
  return *std::move(found);
}

std::string mistakes(const std::string& sweep) {
  runner::core::Diagnostics diagnostics;
  tests::read_sweep(sweep, diagnostics, 25);
  return runner::core::render(diagnostics);
}

/// Adds the whole next generation, with these values; NaN is a failure.
std::vector<Variant> grow(const Sweep& sweep, std::vector<Observation>& observations,
                          const std::vector<double>& values) {
  std::vector<Variant> generation;
  for (std::size_t i = 0; i < values.size(); ++i) {
    REQUIRE_FALSE(next_variant_waits(sweep, observations));
    const auto next = next_variant(sweep, observations);
    REQUIRE(next.has_value());
    generation.push_back(*next);
    Observation one;
    one.point = next->point;
    one.state = Observation::State::kOpen;
    observations.push_back(one);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    Observation& one = observations[observations.size() - values.size() + i];
    one.state = std::isnan(values[i]) ? Observation::State::kFailed : Observation::State::kComplete;
    if (!std::isnan(values[i])) one.values = {values[i]};
  }
  return generation;
}

constexpr const char* kSweep =
    R"(  parameters: {optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}, model.hidden: {values: [[4], [8], [16]]}}
  sampler: {type: random, seed: 4}
  population: {size: 4, interval: 10, resample: 0}
)";

}  // namespace

TEST_CASE("the worst of a generation resume from the best, all others as they were", "[sweep][population]") {
  const Sweep sweep = read(kSweep);
  CHECK(sweep.variants_to_come() == 12);  // of 25 steps the last generation has 5
  std::vector<Observation> observations;
  const auto first = grow(sweep, observations, {0.3, 0.1, 0.4, 0.2});
  for (const Variant& one : first) CHECK((one.parent == -1 && one.until == 10));
  const auto second = grow(sweep, observations, {0.3, NAN, 0.4, 0.2});
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(second[i].until == 20);
    CHECK(second[i].parent == (i == 2 ? 1 : static_cast<std::int64_t>(i)));
  }
  CHECK(second[0].point == first[0].point);
  const double factor = second[2].point[0] / first[1].point[0];
  CHECK((factor == Approx(0.8) || factor == Approx(1.2)));
  CHECK(second[2].point[1] == first[1].point[1]);  // the saved state is of that model
  const auto third = grow(sweep, observations, {0.1, 0.1, 0.1, 0.1});
  CHECK(third[1].parent == 7);  // failed, and resumes from the best
  CHECK(third[2].parent == 6);  // of four one is replaced, and that was the one that failed
  CHECK(third[0].until == 25);
  CHECK_FALSE(next_variant(sweep, observations).has_value());
}

TEST_CASE("a generation begins when the one before has ended", "[sweep][population]") {
  const Sweep sweep = read(kSweep);
  std::vector<Observation> observations;
  grow(sweep, observations, {0.3, 0.1, 0.4, 0.2});
  observations[2].state = Observation::State::kOpen;
  CHECK(next_variant_waits(sweep, observations));
}

TEST_CASE("members that a list does not fill are drawn by the seed", "[sweep][population]") {
  const auto second_member = [](const std::string& seed) {
    const Sweep sweep = read(R"(  parameters: {optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}}
  sampler: {type: list, seed: )" +
                             seed + R"(, points: [{optimizer.lr: 0.01}]}
  population: {size: 2, interval: 10}
)");
    std::vector<Observation> observations;
    const auto generation = grow(sweep, observations, {0.1, 0.2});
    CHECK(generation[0].point[0] == 0.01);
    return generation[1].point[0];
  };
  CHECK(second_member("1") == second_member("1"));
  CHECK(second_member("1") != second_member("2"));
}

TEST_CASE("no member resumes when all have failed", "[sweep][population]") {
  const Sweep sweep = read(kSweep);
  std::vector<Observation> observations;
  grow(sweep, observations, {NAN, NAN, NAN, NAN});
  CHECK_FALSE(next_variant_waits(sweep, observations));
  CHECK_FALSE(next_variant(sweep, observations).has_value());
}

TEST_CASE("values stay within the space however often they move", "[sweep][population]") {
  const Sweep sweep = read(R"(  parameters:
    optimizer.lr: {distribution: log_uniform, min: 0.01, max: 0.02}
    optimizer.weight_decay: {values: [0.0, 0.1, 0.2]}
    training.clip_grad_norm: {min: 0.5, max: 1.5, q: 0.25}
    logging_steps: {min: 1, max: 9}
  constraints: "optimizer.weight_decay < 0.2 or optimizer.lr < 0.015"
  sampler: {type: random, seed: 1}
  population: {size: 6, interval: 1, quantile_fraction: 0.5, explore: [optimizer.lr, optimizer.weight_decay, training.clip_grad_norm, logging_steps]}
)");
  std::vector<Observation> observations;
  std::set<double> seen;
  for (int generation = 0; generation < 20; ++generation) {
    for (const Variant& one : grow(sweep, observations, {0.6, 0.5, 0.4, 0.3, 0.2, 0.1})) {
      for (std::size_t i = 0; i < one.point.size(); ++i) CHECK(sweep.space().dimensions()[i].has(one.point[i]));
      CHECK(sweep.space().allows(one.point));
      seen.insert(one.point[0]);
    }
  }
  CHECK(seen.size() > 20);
}

TEST_CASE("errors in a population are reported at their location", "[sweep][population]") {
  const std::string lr = "  parameters: {optimizer.lr: {min: 0.001, max: 0.1}}\n";
  CHECK(mistakes(lr + "  population: {size: 4, interval: 10, explore: [optimizer.lrr]}\n")
            .find("the sweep does not vary optimizer.lrr") != std::string::npos);
  CHECK(mistakes("  parameters: {model.hidden: {values: [[4], [8]]}}\n  population: {size: 4, interval: 10}\n")
            .find("none of the swept parameters can be changed mid-training") != std::string::npos);
  CHECK(mistakes(lr + "  population: {size: 4, interval: 10}\n  n_trials: 3\n").find("n_trials is set") !=
        std::string::npos);
  CHECK(mistakes(lr + "  population: {size: 4, interval: 10}\n  pruner: {type: median}\n")
            .find("a population replaces members itself and cannot be combined with a pruner") != std::string::npos);
}
