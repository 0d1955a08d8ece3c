#include "runner/train/data/epoch_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

namespace runner::train {
namespace {

std::vector<std::int64_t> whole(const EpochOrder::Options& options, std::int64_t epoch) {
  EpochOrder order(options);
  const auto all = order.read(epoch, 0, EpochOrder::length(options));
  return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("blocks of neighbours stay together, and no sample is lost", "[train][epoch_order]") {
  const EpochOrder::Options options{.size = 103, .block = 10, .shuffle = true, .seed = 5};
  const auto order = whole(options, 2);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> numbers(103);
  std::iota(numbers.begin(), numbers.end(), 0);
  CHECK(sorted == numbers);
  int changes = 0;
  for (std::size_t i = 1; i < order.size(); ++i) changes += order[i] / 10 != order[i - 1] / 10 ? 1 : 0;
  CHECK(changes == 10);  // eleven blocks
  CHECK(order != numbers);
  CHECK(order != whole(options, 3));
}

TEST_CASE("an order read in pieces, backwards and across epochs is the whole one", "[train][epoch_order]") {
  struct Case {
    const char* name;
    EpochOrder::Options options;
  };
  const Case cases[] = {{"one permutation", {.size = 57, .shuffle = true, .seed = 1}},
                        {"blocks", {.size = 57, .block = 8, .shuffle = true, .seed = 1}},
                        {"a block of one", {.size = 57, .block = 1, .shuffle = true, .seed = 1}},
                        {"in order", {.size = 57, .block = 8}}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      EpochOrder order(c.options);
      for (const std::int64_t epoch : {0, 1, 0, 7}) {
        const auto wanted = whole(c.options, epoch);
        for (const auto& [begin, count] :
             {std::pair<int, int>{0, 5}, {5, 5}, {10, 30}, {56, 1}, {3, 4}, {40, 17}, {0, 57}, {20, 1}}) {
          const auto part = order.read(epoch, begin, count);
          CHECK(std::equal(part.begin(), part.end(), wanted.begin() + begin, wanted.begin() + begin + count));
        }
      }
    }
  }
}

TEST_CASE("an epoch may be shorter or longer than the data", "[train][epoch_order]") {
  const EpochOrder::Options all{.size = 20, .shuffle = true, .seed = 3};
  EpochOrder::Options some = all, more = all;
  some.num_samples = 7;
  more.num_samples = 50;
  const auto order = whole(all, 1), shorter = whole(some, 1), longer = whole(more, 1);
  REQUIRE(shorter.size() == 7);
  REQUIRE(longer.size() == 50);
  CHECK(std::equal(shorter.begin(), shorter.end(), order.begin()));
  CHECK(std::equal(order.begin(), order.end(), longer.begin()));
  for (const int round : {0, 1}) {
    std::vector<std::int64_t> sorted(longer.begin() + 20 * round, longer.begin() + 20 * (round + 1));
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) CHECK(sorted[i] == static_cast<std::int64_t>(i));
  }
  CHECK_FALSE(std::equal(order.begin(), order.end(), longer.begin() + 20));
}

TEST_CASE("with replacement each sample is as likely every time", "[train][epoch_order]") {
  EpochOrder::Options options{.size = 10, .shuffle = true, .seed = 3, .num_samples = 10000, .replacement = true};
  const auto order = whole(options, 0);
  std::vector<int> counts(10);
  for (const std::int64_t sample : order) ++counts[static_cast<std::size_t>(sample)];
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);  // five standard deviations
}

TEST_CASE("of groups each is as likely, and each sample of one", "[train][epoch_order]") {
  const auto groups = std::make_shared<const std::vector<std::vector<std::int64_t>>>(
      std::vector<std::vector<std::int64_t>>{{0, 1, 2, 3, 4, 6, 7, 8}, {5, 9}});
  EpochOrder::Options options{.size = 10, .shuffle = true, .seed = 3, .num_samples = 10000, .groups = groups};
  const auto order = whole(options, 0);
  std::vector<int> counts(10);
  for (const std::int64_t sample : order) ++counts[static_cast<std::size_t>(sample)];
  for (std::size_t i = 0; i < counts.size(); ++i) CHECK(std::abs(counts[i] - (i == 5 || i == 9 ? 2500 : 625)) < 220);
  CHECK(whole(options, 0) == order);
  CHECK(whole(options, 1) != order);
}

TEST_CASE("batches are made of samples of about the same length", "[train][epoch_order]") {
  constexpr std::int64_t kSamples = 4003, kBatch = 8;
  const auto length_of = [](std::int64_t sample) { return sample * 7919 % 500; };  // no two neighbours are alike
  EpochOrder::Options options{.size = kSamples, .shuffle = true, .seed = 3};
  const auto padding = [&](const std::vector<std::int64_t>& order) {
    std::int64_t padded = 0;
    for (std::int64_t at = 0; at < kSamples; at += kBatch) {
      std::int64_t longest = 0;
      const std::int64_t end = std::min(at + kBatch, kSamples);
      for (std::int64_t i = at; i < end; ++i)
        longest = std::max(longest, length_of(order[static_cast<std::size_t>(i)]));
      for (std::int64_t i = at; i < end; ++i) padded += longest - length_of(order[static_cast<std::size_t>(i)]);
    }
    return padded;
  };
  const auto plain = whole(options, 0);
  options.group = kBatch;
  options.length_of = length_of;
  const auto grouped = whole(options, 0);
  CHECK(padding(grouped) < padding(plain) / 15);
  CHECK(grouped == whole(options, 0));
  CHECK(grouped != whole(options, 1));
  auto sorted = grouped;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) REQUIRE(sorted[i] == static_cast<std::int64_t>(i));
  // A stretch holds the samples that it would have held, and its batches do not come longest first.
  const auto stretch = kBatch * EpochOrder::kBatchesGrouped;
  CHECK(std::is_permutation(grouped.begin(), grouped.begin() + stretch, plain.begin()));
  int falls = 0;
  for (std::int64_t i = kBatch; i < stretch; i += kBatch) {
    falls += length_of(grouped[static_cast<std::size_t>(i)]) < length_of(grouped[static_cast<std::size_t>(i - kBatch)]);
  }
  CHECK(falls > 10);
  CHECK(falls < 39);
}

}  // namespace runner::train
