#include "components/kernels/int8_dots.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

TEST_CASE("products of numbers in 8 bits are exact", "[kernels]") {
  std::mt19937 random(1);
  for (const std::int64_t depth : {1, 15, 32, 64, 100, 4096}) {
    constexpr std::int64_t kRows = 3, kColumns = 5, kEvery = 7;
    std::vector<std::int8_t> a(static_cast<std::size_t>(kRows * depth)), b(static_cast<std::size_t>(kColumns * depth));
    for (auto* numbers : {&a, &b}) {
      for (std::int8_t& number : *numbers) number = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
    }
    std::fill(a.begin(), a.begin() + depth, std::int8_t{127});  // the largest sum
    std::fill(b.begin(), b.begin() + depth, std::int8_t{-127});
    std::vector<std::int32_t> c(kRows * kEvery, 5);
    components::kernels::int8_dots({a.data(), b.data(), c.data(), kEvery, kRows, kColumns, depth});
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t column = 0; column < kColumns; ++column) {
        std::int64_t sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          sum += a[static_cast<std::size_t>(row * depth + k)] * b[static_cast<std::size_t>(column * depth + k)];
        }
        CHECK(c[static_cast<std::size_t>(row * kEvery + column)] == sum);
      }
      CHECK(c[static_cast<std::size_t>(row * kEvery + kColumns)] == 5);
    }
  }
}
