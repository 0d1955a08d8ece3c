#include "tests/support/sampling.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

namespace tests {
namespace {

constexpr int kOneOf = 3;        // of kills at random moments
constexpr int kOthersOneOf = 5;  // of the points that are no first and no last one, which are many, too

}  // namespace

unsigned seed() {
  static const unsigned chosen = [] {
    const char* text = std::getenv("ROUX_TEST_SEED");
    const unsigned value = text != nullptr && *text != '\0' ? static_cast<unsigned>(std::strtoul(text, nullptr, 10))
                                                            : std::random_device()() % 1'000'000 + 1;
    std::printf("ROUX_TEST_SEED=%u repeats the random choices of these tests\n", value);
    std::fflush(stdout);
    return value;
  }();
  return chosen;
}

bool takes_all() {
  const char* text = std::getenv("ROUX_TEST_ALL");
  return text != nullptr && std::string(text) == "1";
}

int share_of(int all) { return takes_all() ? all : (all + kOneOf - 1) / kOneOf; }

std::vector<int> drawn_points(const std::vector<std::string>& kinds, std::mt19937& random) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> ends;  // the first and the last of a kind
  for (std::size_t i = 0; i < kinds.size(); ++i) ends.try_emplace(kinds[i], i, i).first->second.second = i;
  std::vector<int> points;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto& [first, last] = ends.at(kinds[i]);
    const bool drawn = random() % kOthersOneOf == 0;
    if (takes_all() || drawn || i == first || i == last) points.push_back(static_cast<int>(i) + 1);
  }
  return points;
}

}  // namespace tests
