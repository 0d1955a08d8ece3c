#include "components/sampler/math/ranking.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <vector>

using components::sampler::crowding_distances;
using components::sampler::non_dominated_fronts;
using components::sampler::Observation;
using components::sampler::ranked;

TEST_CASE("variants are ranked by their value, pruned ones by how far they came", "[sampler]") {
  using State = Observation::State;
  const std::vector<Observation> observations = {
      {{0}, State::kComplete, {3}, 10}, {{1}, State::kOpen},   {{2}, State::kPruned, {0.1}, 2},
      {{3}, State::kComplete, {1}, 10}, {{4}, State::kFailed}, {{5}, State::kPruned, {9}, 4},
      {{6}, State::kPruned, {8}, 4}};
  CHECK(ranked(observations) == std::vector<std::size_t>{3, 0, 6, 5, 2});
}

TEST_CASE("variants of several objectives stand in fronts, and apart from each other", "[sampler]") {
  //  0: best in the first   1: in between   2: best in the second   3: behind 1   4: behind all   5: as 1
  const std::vector<std::vector<double>> values = {{0, 4}, {1, 1}, {4, 0}, {2, 1}, {5, 5}, {1, 1}};
  const std::vector<std::size_t> fronts = non_dominated_fronts(values);
  CHECK(fronts == std::vector<std::size_t>{0, 0, 0, 1, 2, 0});
  const std::vector<double> room = crowding_distances(values, fronts);
  const double infinite = std::numeric_limits<double>::infinity();
  // Along the first objective 0, 1, 5, 2: 1 lies between 0 and 1 of 4, 5 between 1 and 4; along the second 2, 1, 5, 0.
  CHECK(room == std::vector<double>{infinite, 0.25 + 0.25, infinite, infinite, infinite, 0.75 + 0.75});
  std::vector<Observation> observations;
  for (const std::vector<double>& one : values) observations.push_back({{0}, Observation::State::kComplete, one});
  CHECK(ranked(observations) == std::vector<std::size_t>{0, 2, 5, 1, 3, 4});
}

TEST_CASE("no point outside of the earlier fronts dominates one of a front", "[sampler]") {
  std::mt19937 random(5);
  for (const std::size_t objectives : {2, 3, 4}) {
    std::vector<std::vector<double>> values(60, std::vector<double>(objectives));
    for (std::vector<double>& one : values) {
      for (double& value : one) value = static_cast<double>(random() % 9);  // few values, so that many are alike
    }
    const std::vector<std::size_t> fronts = non_dominated_fronts(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::size_t least = 0;  // one behind the last of those that dominate it
      for (std::size_t k = 0; k < values.size(); ++k) {
        if (components::sampler::dominates(values[k], values[i])) least = std::max(least, fronts[k] + 1);
      }
      CHECK(fronts[i] == least);
    }
  }
}
