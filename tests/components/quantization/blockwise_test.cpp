#include "components/quantization/blockwise.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace quantization = components::quantization;
namespace kernels = components::kernels;

namespace {

/// By comparison with every bound: the definition.
std::uint8_t nearest(const kernels::CodeTable& table, float scaled) {
  const auto found = std::lower_bound(table.bounds.begin(), table.bounds.end() - 1, scaled);
  return static_cast<std::uint8_t>(found - table.bounds.begin());
}

struct Quantised {
  std::vector<std::uint8_t> codes;
  std::vector<float> absmax;
};

Quantised quantised(const std::vector<float>& numbers, std::int64_t block, const kernels::CodeTable& table) {
  const auto blocks = quantization::blocks_of(static_cast<std::int64_t>(numbers.size()), block);
  Quantised made{std::vector<std::uint8_t>(numbers.size()), std::vector<float>(static_cast<std::size_t>(blocks))};
  quantization::quantize_blockwise(numbers, block, table, made.codes, made.absmax);
  return made;
}

}  // namespace

TEST_CASE("a number has the nearest code, and half-way the lower one", "[quantization]") {
  for (const kernels::CodeTable* table : {&kernels::kSignedCodes, &kernels::kUnsignedCodes}) {
    std::vector<float> numbers = {1.0F};  // the absmax
    for (const auto* values : {&table->values, &table->bounds}) {
      for (const float value : *values) {
        if (!std::isfinite(value)) continue;
        numbers.insert(numbers.end(), {std::nextafter(value, -2.0F), value});
        if (value < 1.0F) numbers.push_back(std::nextafter(value, 2.0F));
      }
    }
    // The least and the largest number of all that share their first 16 bits.
    for (std::uint32_t high = 0; high < 0x3F80U; ++high) {
      for (const std::uint32_t low : {0U, 0xFFFFU}) {
        const auto number = std::bit_cast<float>(high << 16U | low);
        numbers.insert(numbers.end(), {number, -number});
      }
    }
    const Quantised made = quantised(numbers, static_cast<std::int64_t>(numbers.size()), *table);
    REQUIRE(made.absmax == std::vector<float>{1.0F});
    int wrong = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) wrong += made.codes[i] == nearest(*table, numbers[i]) ? 0 : 1;
    CHECK(wrong == 0);
  }
}

TEST_CASE("blocks of zeros and of numbers that are not finite are told apart", "[quantization]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const Quantised made = quantised({0.0F, 0.0F, 1.0F, kNan, -kInfinity, 1.0F, 1e-42F}, 2, kernels::kSignedCodes);
  CHECK(made.absmax[0] == 0.0F);
  CHECK(std::isnan(made.absmax[1]));
  CHECK(made.absmax[2] == kInfinity);
  CHECK(made.absmax[3] == 1e-42F);
  std::vector<float> again(7);
  quantization::dequantize_blockwise(made.codes, made.absmax, 2, kernels::kSignedCodes, again);
  CHECK(again[0] == 0.0F);
  CHECK(std::isnan(again[2]));
  CHECK(std::isinf(again[4]));
}

TEST_CASE("an odd number of 4-bit numbers fills its last byte with zero", "[quantization]") {
  const std::vector<float> numbers = {1.0F, -1.0F, 0.5F};
  std::vector<std::uint8_t> packed(2);
  std::vector<float> absmax(1), again(3);
  quantization::quantize_four_bit(numbers, 64, kernels::kNf4, packed, absmax);
  // By hand: 1 is code 15, -1 code 0; 0.5 lies between 0.44 (12) and 0.56 (13), nearer to 12; 0 is code 7.
  CHECK(packed == std::vector<std::uint8_t>{0xF0, 0xC7});
  quantization::dequantize_four_bit(packed, absmax, 64, kernels::kNf4, again);
  CHECK(again == std::vector<float>{1.0F, -1.0F, kernels::kNf4.values[12]});
}
