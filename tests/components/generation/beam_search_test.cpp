// What a search does that no recorded text shows: draws, and fewer continuations than beams. V: vocabulary

#include "components/generation/beam_search.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "components/generation/left_out.h"

namespace {

using components::generation::BeamOptions;
using components::generation::BeamSearch;
using components::generation::leave_out;
using components::generation::LeftOut;
using Ids = std::vector<std::int32_t>;
using Row = std::vector<float>;

constexpr float kInf = std::numeric_limits<float>::infinity();

Row logs(std::vector<double> probabilities) {
  Row row;
  for (const double probability : probabilities) row.push_back(static_cast<float>(std::log(probability)));
  return row;
}

/// The same probabilities behind each running beam.
void advance(BeamSearch& search, const Row& row) {
  Row all;
  for (std::size_t i = 0; i < search.running().size(); ++i) all.insert(all.end(), row.begin(), row.end());
  search.advance({all, {}}, [](std::span<const std::int32_t>) { return false; });
}

std::vector<Ids> tokens_of(const std::vector<components::generation::Beam>& beams) {
  std::vector<Ids> tokens;
  for (const auto& beam : beams) tokens.push_back(beam.tokens);
  return tokens;
}

}  // namespace

TEST_CASE("tokens that repeat, and an end that comes too early, are left out", "[generation][beams]") {
  struct Case {
    const char* name;
    Ids tokens;
    std::int64_t new_tokens;
    LeftOut which;
    std::vector<std::size_t> expected;  // by hand
  };
  const Case cases[] = {
      {"nothing", {1, 2, 1}, 1, {}, {}},
      {"each token once", {1, 2, 1}, 1, {1, 0}, {1, 2}},
      {"what followed the last token", {1, 2, 1, 4, 1}, 1, {2, 0}, {2, 4}},
      {"what followed the last two", {1, 2, 3, 1, 2}, 1, {3, 0}, {3}},
      {"a text that is too short for any", {1, 2}, 1, {3, 0}, {}},
      {"a text as long as that", {2, 2, 2}, 1, {3, 0}, {2}},
      {"the prompt alone", {5, 3}, 0, {1, 0}, {3, 5}},
      {"end tokens of a text with none", {1}, 0, {0, 1}, {0, 5}},
      {"end tokens of a text with one", {1, 2}, 1, {0, 1}, {}},
      {"both", {0, 2, 0}, 2, {2, 3}, {0, 2, 5}},
  };
  for (const Case& one : cases) {
    INFO(one.name);
    Row logits(6, 1.0F), expected(6, 1.0F);
    for (const std::size_t id : one.expected) expected[id] = -kInf;
    CHECK(leave_out(logits, {one.tokens, one.new_tokens}, one.which, Ids{0, 5, 99, -1}));
    CHECK(logits == expected);
  }
  Row logits(3, 1.0F);
  CHECK_FALSE(leave_out(logits, {Ids{0, 1, 2}, 1}, {1, 0}, {}));
}

TEST_CASE("a search returns the most probable texts", "[generation][beams]") {
  const Row row = logs({0.5, 0.3, 0.2});
  BeamSearch search({.count = 2, .length_penalty = 0, .returned = 2}, {3, {}}, {});
  while (!search.done()) advance(search, row);
  CHECK(tokens_of(search.finished()) == std::vector<Ids>{{0, 0, 0}, {0, 0, 1}});
  CHECK(search.finished()[0].score == Approx(std::log(0.125)));
  CHECK(search.finished()[1].score == Approx(std::log(0.075)));
}

TEST_CASE("where fewer tokens may follow than there are beams, fewer go on", "[generation][beams]") {
  Row row = logs({0.6, 0.4});
  BeamSearch search({.count = 4, .returned = 1}, {3, {}}, {});
  advance(search, row);
  CHECK(tokens_of(search.running()) == std::vector<Ids>{{0}, {1}});
  advance(search, row);
  CHECK(search.running().size() == 4);
  CHECK_FALSE(search.done());
  advance(search, Row(2, -kInf));
  CHECK(search.done());
  CHECK(search.finished().empty());
}

TEST_CASE("a text that ends by what it says is done", "[generation][beams]") {
  const Row row = logs({0.7, 0.3});
  BeamSearch search({.count = 2, .stopping = BeamOptions::Stopping::kFull, .returned = 2}, {9, {}}, {});
  const auto two_zeros = [](std::span<const std::int32_t> made) {
    return made.size() >= 2 && made[made.size() - 1] == 0 && made[made.size() - 2] == 0;
  };
  while (!search.done()) {
    Row all;
    for (std::size_t i = 0; i < search.running().size(); ++i) all.insert(all.end(), row.begin(), row.end());
    search.advance({all, {}}, two_zeros);
  }
  CHECK(tokens_of(search.finished()) == std::vector<Ids>{{0, 0}, {1, 0, 0}});
}

TEST_CASE("beams are drawn without putting them back, by their probabilities", "[generation][beams]") {
  // Two beams draw four of five tokens and keep the best two of them.
  const std::vector<double> probabilities = {0.4, 0.3, 0.15, 0.1, 0.05};
  const Row row = logs(probabilities);
  constexpr int kDraws = 20000;
  std::map<Ids, int> left_out;
  for (int i = 0; i < kDraws; ++i) {
    BeamSearch search({.count = 2, .returned = 1}, {9, {}}, {true, 3, i});
    advance(search, row);
    Ids kept;
    for (const auto& beam : search.running()) kept.push_back(beam.tokens.front());
    ++left_out[kept];
  }
  // The best two of four drawn: {0, 1} unless one of them was not drawn. P(not drawn) of token t, drawn last of five:
  const auto last = [&probabilities](std::size_t t) {
    double sum = 0;
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < probabilities.size(); ++i) {
      if (i != t) others.push_back(i);
    }
    do {  // each order of the others
      double chance = 1, rest = 1;
      for (const std::size_t i : others) {
        chance *= probabilities[i] / rest;
        rest -= probabilities[i];
      }
      sum += chance;
    } while (std::next_permutation(others.begin(), others.end()));
    return sum;
  };
  const double without_0 = last(0), without_1 = last(1);
  CHECK(left_out[{1, 2}] / double{kDraws} == Approx(without_0).margin(0.004));
  CHECK(left_out[{0, 2}] / double{kDraws} == Approx(without_1).margin(0.006));
  CHECK(left_out.size() == 3);
  BeamSearch once({.count = 2, .returned = 1}, {9, {}}, {true, 3, 7}), again = once;
  for (int i = 0; i < 4; ++i) {
    advance(once, row);
    advance(again, row);
  }
  CHECK(tokens_of(once.running()) == tokens_of(again.running()));
}
