// Rows times rows in 4 bits, at each level that the processor can run: the bits of what the codes stand for.

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "components/kernels/four_bit.h"
#include "tests/components/kernels/levels.h"

namespace {

using tests::kernels::Bf16;
using tests::kernels::draw;

namespace kernels = components::kernels;

template <typename T>
std::vector<float> by_numbers(const kernels::TransformerKernels<T>& level, const std::vector<T>& a,
                              const std::vector<T>& numbers, std::int64_t rows, std::int64_t columns,
                              std::int64_t depth) {
  std::vector<float> c(static_cast<std::size_t>(rows * columns));
  level.dots({a.data(), depth, numbers.data(), depth, c.data(), columns, rows, columns, depth});
  return c;
}

}  // namespace

TEMPLATE_TEST_CASE("rows in 4 bits give the bits of the numbers that they stand for", "[kernels]", float, Bf16) {
  constexpr std::int64_t kBlock = kernels::CodedDots<TestType>::kBlock;
  for (const auto* all : tests::kernels::transformer_levels()) {
    const auto& level = tests::kernels::of_type<TestType>(*all);
    if (level.coded_dots == nullptr) continue;
    for (const kernels::FourBitTable* table : {&kernels::kNf4, &kernels::kFp4}) {
      for (const std::int64_t rows : {1, 2, 5, 6, 7, 13}) {
        for (const std::int64_t columns : {1, 4, 11, 48}) {
          for (const std::int64_t depth : {kBlock, 5 * kBlock}) {
            CAPTURE(rows, columns, depth);
            const auto a = draw<TestType>(rows * depth, 1);
            const auto weight = draw<float>(columns * depth, 2);
            std::vector<std::uint8_t> codes(weight.size() / 2);
            std::vector<float> scales(weight.size() / static_cast<std::size_t>(kBlock));
            kernels::quantize_four_bit(weight.data(), columns * depth, kBlock, *table, codes.data(), scales.data());
            std::vector<TestType> numbers(weight.size());
            kernels::dequantize_four_bit(codes.data(), scales.data(), 0, columns * depth, kBlock, *table,
                                         numbers.data());
            std::vector<float> c(static_cast<std::size_t>(rows * columns));
            level.coded_dots({a.data(), depth, codes.data(), scales.data(), table->values.data(), c.data(), columns,
                              rows, columns, depth});
            CHECK(c == by_numbers(level, a, numbers, rows, columns, depth));
          }
        }
      }
    }
  }
}
