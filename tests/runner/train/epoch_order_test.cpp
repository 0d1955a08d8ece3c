#include "runner/train/epoch_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

namespace runner::train {
namespace {

std::vector<std::int64_t> whole(const EpochOrder::Options& options, std::int64_t epoch) {
  EpochOrder order(options);
  const auto all = order.read(epoch, 0, options.size);
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

}  // namespace runner::train
