#include "components/generation/sampling.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "components/tensor/philox.h"
#include "tests/support/paths.h"

namespace {

using components::philox;
using components::generation::choose;
using components::generation::kNoToken;
using components::generation::log_probability;
using components::generation::process;
using components::generation::Sampling;
using components::generation::uniform;

using Row = std::vector<float>;
using Ids = std::vector<std::int32_t>;
using Change = std::function<void(Row&, const Ids&, const Sampling&)>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// What tests/parity/cases/processors.py wrote.
struct Recorded {
  std::vector<Sampling> combinations;
  std::vector<Row> rows;
  std::vector<Ids> seen;
  std::vector<std::string> kept;                   ///< hexadecimal, by combination, then by row
  std::vector<std::vector<double>> probabilities;  ///< of those that stay; of every `every`th pair
  std::size_t every = 0;
};

Recorded read_recorded() {
  const auto file = nlohmann::json::parse(
      std::ifstream(tests::source_dir() + "/tests/components/generation/recorded/processors.json"));
  Recorded recorded;
  for (const auto& values : file["combinations"]) {
    recorded.combinations.push_back({.do_sample = true,
                                     .temperature = values.value("temperature", 1.0),
                                     .top_k = values.value("top_k", std::int64_t{0}),
                                     .top_p = values.value("top_p", 1.0),
                                     .min_p = values.value("min_p", 0.0),
                                     .repetition_penalty = values.value("repetition_penalty", 1.0),
                                     .min_kept = values.value("min_kept", std::int64_t{1})});
  }
  for (const auto& values : file["rows"]) {
    Row& row = recorded.rows.emplace_back();
    for (const auto& value : values) row.push_back(value.get<float>() / file["unit"].get<float>());
  }
  recorded.seen = file["seen"].get<std::vector<Ids>>();
  recorded.kept = file["kept"].get<std::vector<std::string>>();
  for (const auto& values : file["probabilities"]) {
    auto& row = recorded.probabilities.emplace_back();
    for (const auto& value : values) row.push_back(value.get<double>() / file["digits"].get<double>());
  }
  recorded.every = file["every"];
  return recorded;
}

/// Of the ids that are not -inf, as Python writes the number that has their bits.
std::string mask_of(const Row& logits) {
  std::string mask;
  for (std::size_t i = logits.size(); i >= 4; i -= 4) {
    unsigned digit = 0;
    for (std::size_t bit = 4; bit > 0; --bit) digit = 2 * digit + (logits[i - 4 + bit - 1] != -kInf ? 1U : 0U);
    if (digit != 0 || !mask.empty()) mask += "0123456789abcdef"[digit];
  }
  return mask;
}

std::vector<double> softmax(const Row& logits) {
  double sum = 0;
  std::vector<double> values;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - 40.0);
  for (const float logit : logits) values.push_back(std::exp(static_cast<double>(logit) - 40.0) / sum);
  return values;
}

/// Recorded pairs for which `change` makes another distribution.
std::size_t differences(const Recorded& recorded, const Change& change) {
  std::size_t different = 0, pair = 0, whole = 0;
  for (std::size_t c = 0; c < recorded.combinations.size(); ++c) {
    for (std::size_t r = 0; r < recorded.rows.size(); ++r, ++pair) {
      Row row = recorded.rows[r];
      change(row, recorded.seen[r], recorded.combinations[c]);
      bool equal = mask_of(row) == recorded.kept[pair];
      if ((c + r) % recorded.every == 0) {
        const std::vector<double>& expected = recorded.probabilities[whole++];
        float most = -kInf;
        for (const float logit : row) most = std::max(most, logit);
        for (float& logit : row) logit += 40.0F - most;
        const std::vector<double> all = softmax(row);
        std::vector<double> found;
        for (std::size_t i = 0; i < row.size(); ++i) {
          if (row[i] != -kInf) found.push_back(all[i]);
        }
        equal = equal && found.size() == expected.size();
        for (std::size_t i = 0; equal && i < found.size(); ++i) equal = std::abs(found[i] - expected[i]) < 1e-5;
      }
      different += equal ? 0U : 1U;
    }
  }
  REQUIRE(pair == recorded.kept.size());
  REQUIRE(whole == recorded.probabilities.size());
  return different;
}

}  // namespace

TEST_CASE("processed logits have the distributions of Transformers", "[generation][sampling]") {
  const Recorded recorded = read_recorded();
  REQUIRE(recorded.rows.size() * recorded.combinations.size() == 1700);
  CHECK(differences(recorded, [](Row& row, const Ids& seen, const Sampling& sampling) {
          CHECK(process(row, seen, sampling));
        }) == 0);
}

TEST_CASE("the recorded distributions tell a wrong processor", "[generation][sampling]") {
  const Recorded recorded = read_recorded();
  const auto only = [](Row& row, const Ids& seen, Sampling sampling, const std::set<std::string>& words) {
    if (!words.contains("penalty")) sampling.repetition_penalty = 1;
    if (!words.contains("temperature")) sampling.temperature = 1;
    if (!words.contains("top_k")) sampling.top_k = 0;
    if (!words.contains("top_p")) sampling.top_p = 1;
    if (!words.contains("min_p")) sampling.min_p = 0;
    if (words.contains("one")) sampling.min_kept = 1;
    process(row, seen, sampling);
  };
  // Two calls: the words of the first, then the others.
  const std::vector<std::vector<std::set<std::string>>> orders = {
      {{"top_k"}, {"penalty", "temperature", "top_p", "min_p"}},
      {{"top_p"}, {"penalty", "temperature", "top_k", "min_p"}},
      {{"min_p"}, {"penalty", "temperature", "top_k", "top_p"}},
      {{"penalty", "temperature", "top_p"}, {"top_k", "min_p"}},
      {{"penalty", "temperature", "top_k", "min_p"}, {"top_p"}},
      {{"temperature", "top_k", "top_p", "min_p"}, {}},
      {{"penalty", "top_k", "top_p", "min_p"}, {}},
      {{"penalty", "temperature", "top_p", "min_p"}, {}},
      {{"penalty", "temperature", "top_k", "min_p"}, {}},
      {{"penalty", "temperature", "top_k", "top_p"}, {}},
      {{"penalty", "temperature", "top_k", "top_p", "min_p", "one"}, {}},
  };
  for (const auto& order : orders) {
    CAPTURE(order);
    CHECK(differences(recorded, [&](Row& row, const Ids& seen, const Sampling& sampling) {
            for (const auto& words : order) only(row, seen, sampling, words);
          }) > 0);
  }
  const std::vector<std::pair<std::string, std::function<void(Sampling&)>>> changes = {
      {"one more", [](Sampling& sampling) { sampling.top_k += sampling.top_k > 0 ? 1 : 0; }},
      {"a little more", [](Sampling& sampling) { sampling.top_p = std::min(1.0, sampling.top_p * 1.002); }},
      {"a little warmer", [](Sampling& sampling) { sampling.temperature *= 1.002; }},
      {"a little less probable", [](Sampling& sampling) { sampling.min_p *= 0.98; }},
      {"a little more penalty", [](Sampling& sampling) { sampling.repetition_penalty *= 1.002; }}};
  for (const auto& change : changes) {
    CAPTURE(change.first);
    CHECK(differences(recorded, [&](Row& row, const Ids& seen, Sampling sampling) {
            change.second(sampling);
            process(row, seen, sampling);
          }) > 0);
  }
  CHECK(differences(recorded, [](Row& row, const Ids& seen, const Sampling& sampling) {
          for (const std::int32_t id : seen) {  // once for each time that it is there
            process(row, std::array{id}, {.repetition_penalty = sampling.repetition_penalty});
          }
          process(row, {}, sampling);
        }) > 0);
}

TEST_CASE("without do_sample only the penalty changes logits", "[generation][sampling]") {
  Row row = {1.0F, -2.0F, 0.0F, 4.0F};
  CHECK(process(row, Ids{3, 1, 3, 9, -1}, {.temperature = 0.5, .top_k = 1, .top_p = 0.1, .repetition_penalty = 2}));
  CHECK(row == Row{1.0F, -4.0F, 0.0F, 2.0F});
}

TEST_CASE("ties stay as in Transformers", "[generation][sampling]") {
  Row row = {2.0F, 3.0F, 2.0F, 2.0F, 1.0F};
  CHECK(process(row, {}, {.do_sample = true, .top_k = 2}));
  CHECK(row == Row{2.0F, 3.0F, 2.0F, 2.0F, -kInf});  // all that equal the second
  row.assign(8, 0.0F);
  CHECK(process(row, {}, {.do_sample = true, .top_p = 0.25}));
  CHECK(row == Row{-kInf, -kInf, -kInf, -kInf, -kInf, -kInf, 0.0F, 0.0F});
  row.assign(8, 0.0F);
  CHECK(process(row, {}, {.do_sample = true, .top_p = 0.0}));
  CHECK(row == Row{-kInf, -kInf, -kInf, -kInf, -kInf, -kInf, -kInf, 0.0F});
}

TEST_CASE("greedy is the first of the largest", "[generation][sampling]") {
  CHECK(choose(Row{1.0F, 3.0F, 3.0F}, {}, {}) == 1);
  CHECK(choose(Row{-kInf, -5.0F}, {}, {}) == 1);
}

TEST_CASE("logits that are not finite have no token", "[generation][sampling]") {
  const Sampling all = {.do_sample = true, .temperature = 0.7, .top_k = 2, .top_p = 0.9, .min_p = 0.1};
  for (const Row& bad : {Row{1.0F, kNan, 2.0F}, Row{kInf, 1.0F}, Row{-kInf, -kInf}, Row{}, Row{kNan}}) {
    Row row = bad;
    CHECK_FALSE(process(row, {}, all));
    CHECK(choose(bad, all, {}) == kNoToken);
    CHECK(choose(bad, {}, {}) == kNoToken);
    CHECK(std::isnan(log_probability(bad, 0)));
  }
  Row row = {1.0F, 2.0F};
  CHECK_FALSE(process(row, {}, {.do_sample = true, .temperature = 1e-40}));  // becomes inf
  CHECK(choose(row, {}, {}) == kNoToken);
  row = {-kInf, 2.0F, 1.0F};  // a token that is never chosen
  CHECK(process(row, {}, all));
  for (std::int64_t step = 0; step < 50; ++step) CHECK(choose(row, all, {.step = step}) > 0);
}

TEST_CASE("the random numbers of a place are those of philox", "[generation][sampling]") {
  // From the known answers of the authors' library Random123.
  constexpr std::uint32_t kOnes = 0xFFFF'FFFFU;
  CHECK(philox({0, 0, 0, 0}, 0) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({kOnes, kOnes, kOnes, kOnes}, ~std::uint64_t{0}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0'a4093822U) ==
        std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("each part of a place gives another number", "[generation][sampling]") {
  std::set<double> numbers;
  for (std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32U}) {
    for (std::int64_t sequence : {0LL, 1LL, 1LL << 32U}) {
      for (std::int64_t step : {0LL, 1LL, 1LL << 32U}) numbers.insert(uniform({seed, sequence, step}));
    }
  }
  CHECK(numbers.size() == 27);
  CHECK(*numbers.begin() >= 0);
  CHECK(*numbers.rbegin() < 1);
}

namespace {

/// Pearson's statistic of drawn tokens against probabilities.
double chi_square(const Row& logits, const std::vector<double>& probabilities, const Sampling& sampling) {
  constexpr std::int64_t kDraws = 20'000;
  std::vector<double> counts(logits.size());
  for (std::int64_t draw = 0; draw < kDraws; ++draw) {
    const std::int32_t token = choose(logits, sampling, {.seed = 5, .sequence = draw % 100, .step = draw / 100});
    counts[static_cast<std::size_t>(token)] += 1;
  }
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * kDraws;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

}  // namespace

TEST_CASE("tokens are drawn with the probabilities of the softmax", "[generation][sampling]") {
  Row logits(1100);  // more than one of the parts that are summed up
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = 40.0F - 0.001F * static_cast<float>((i * 37) % 1100);
  const std::vector<double> probabilities = softmax(logits);
  // 1,099 degrees of freedom: mean 1,099, standard deviation 47; 99.9 % lie below 1,250.
  CHECK(chi_square(logits, probabilities, {.do_sample = true}) < 1250);
  CHECK(chi_square(logits, probabilities, {.do_sample = true}) > 950);  // not more even than chance
  Row warmer = logits;
  for (float& logit : warmer) logit *= 0.6F;
  CHECK(chi_square(warmer, probabilities, {.do_sample = true}) > 1250);
}

TEST_CASE("a log-probability is that of the logits as they are", "[generation][sampling]") {
  const Row row = {0.0F, 1.0F, -kInf, 2.0F};
  const double sum = 1 + std::exp(1.0) + std::exp(2.0);
  CHECK(log_probability(row, 1) == Approx(1 - std::log(sum)));
  CHECK(log_probability(row, 2) == -kInf);
  CHECK(std::isnan(log_probability(row, 4)));
  CHECK(std::isnan(log_probability(row, -1)));
}
