// The kernels around convolutions on float32 and bfloat16 rows, at each level that the processor can run, against sums
// in double precision. A bound counts the roundings of float32, and one of bfloat16 where that is what is stored.

#include "components/kernels/images/images.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "tests/components/kernels/levels.h"

namespace {

using components::kernels::ImageKernels;
using tests::kernels::Bf16;
using tests::kernels::draw;
using tests::kernels::entry;
using tests::kernels::index;
using tests::kernels::is_near;
using tests::kernels::kFloatUnit;
using tests::kernels::value_of;

constexpr std::int64_t kRows = 70;  // more than are added up in float32 at a time
constexpr std::int64_t kWidths[] = {1, 15, 16, 64, 79, 130};

template <typename T, typename Check>
void at_each_level(const Check& check) {
  int number = 0;
  for (const auto* level : tests::kernels::image_levels()) {
    for (const std::int64_t width : kWidths) {
      INFO("level " << number << ", width " << width);
      check(tests::kernels::of_type<T>(*level), width);
    }
    ++number;
  }
}

/// That a sum over the rows, to which something had been added before, is the exact one.
void check_sum(double found, double exact, double size) {
  CHECK(std::abs(found - exact) <= (64 + 4) * kFloatUnit * size);
}

}  // namespace

TEMPLATE_TEST_CASE("sums by channel are those of what is above the pivot", "[kernels][images]", float, Bf16) {
  at_each_level<TestType>([](const ImageKernels<TestType>& kernels, std::int64_t width) {
    const auto x = draw<TestType>(kRows * width, 1, 2);
    const auto pivot = draw<float>(width, 2);
    std::vector<double> sum(index(width), 3), squares(index(width), 5);
    kernels.channel_sums({x.data(), pivot.data(), sum.data(), squares.data(), kRows, width});
    for (std::int64_t c = 0; c < width; ++c) {
      double of_x = 3, of_squares = 5, sizes = 3, square_sizes = 5;
      for (std::int64_t row = 0; row < kRows; ++row) {
        const double above = entry(x, row * width + c) - entry(pivot, c);
        const double size = std::abs(entry(x, row * width + c)) + std::abs(entry(pivot, c));
        of_x += above;
        of_squares += above * above;
        sizes += size;
        square_sizes += 4 * size * size;
      }
      check_sum(sum[index(c)], of_x, sizes);
      check_sum(squares[index(c)], of_squares, square_sizes);
    }
  });
}

TEMPLATE_TEST_CASE("a scale and a shift by channel, with a sum and a ReLU behind", "[kernels][images]", float, Bf16) {
  at_each_level<TestType>([](const ImageKernels<TestType>& kernels, std::int64_t width) {
    const auto x = draw<TestType>(kRows * width, 1), addend = draw<TestType>(kRows * width, 2);
    const auto scale = draw<float>(width, 3), shift = draw<float>(width, 4);
    for (const bool adds : {false, true}) {
      for (const bool relu : {false, true}) {
        std::vector<TestType> y(x.size());
        kernels.scale_shift(
            {x.data(), scale.data(), shift.data(), adds ? addend.data() : nullptr, relu, y.data(), kRows, width});
        for (std::int64_t i = 0; i < kRows * width; ++i) {
          CAPTURE(adds, relu, i);
          const double product = entry(x, i) * entry(scale, i % width), more = adds ? entry(addend, i) : 0;
          const double exact = product + entry(shift, i % width) + more;
          CHECK(is_near(y[index(i)], relu ? std::max(exact, 0.0) : exact,
                        std::abs(product) + std::abs(entry(shift, i % width)) + std::abs(more), 3));
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("the gradients of scale and shift are cut where the ReLU was", "[kernels][images]", float, Bf16) {
  enum class Cut { kNone, kByOutput, kByInput };
  for (const Cut cut : {Cut::kNone, Cut::kByOutput, Cut::kByInput}) {
    CAPTURE(static_cast<int>(cut));
    at_each_level<TestType>([cut](const ImageKernels<TestType>& kernels, std::int64_t width) {
      const auto x = draw<TestType>(kRows * width, 1), dy = draw<TestType>(kRows * width, 2);
      const auto y = draw<TestType>(kRows * width, 3);
      const auto scale = draw<float>(width, 4), shift = draw<float>(width, 5), mean = draw<float>(width, 6);
      const bool by_input = cut == Cut::kByInput;
      std::vector<TestType> g(x.size()), dx(x.size());
      std::vector<double> sum(index(width), 3), products(index(width), 5);
      kernels.scale_shift_sums({x.data(), dy.data(), cut == Cut::kByOutput ? y.data() : nullptr,
                                by_input ? scale.data() : nullptr, by_input ? shift.data() : nullptr, mean.data(),
                                g.data(), sum.data(), products.data(), kRows, width});
      const auto of_gradient = draw<float>(width, 7), of_x = draw<float>(width, 8), constant = draw<float>(width, 9);
      kernels.batch_norm_backward({x.data(), dy.data(), by_input ? scale.data() : nullptr,
                                   by_input ? shift.data() : nullptr, of_gradient.data(), of_x.data(), constant.data(),
                                   dx.data(), kRows, width});
      for (std::int64_t c = 0; c < width; ++c) {
        double of_g = 3, of_products = 5, sizes = 3, product_sizes = 5;
        for (std::int64_t row = 0; row < kRows; ++row) {
          const std::int64_t i = row * width + c;
          CAPTURE(row, c);
          const double before_relu = entry(x, i) * entry(scale, c) + entry(shift, c);
          // Nearer to zero float32 may see the other sign.
          if (by_input) REQUIRE(std::abs(before_relu) > 1e-6);
          const double by = by_input ? before_relu : cut == Cut::kByOutput ? entry(y, i) : 1;
          const double exact = by > 0 ? entry(dy, i) : 0;
          CHECK(entry(g, i) == exact);
          of_g += exact;
          of_products += exact * (entry(x, i) - entry(mean, c));
          sizes += std::abs(exact);
          product_sizes += 2 * std::abs(exact) * (std::abs(entry(x, i)) + std::abs(entry(mean, c)));
          const double kept = cut == Cut::kByOutput ? entry(dy, i) : exact;  // which is not told of an output
          const double a = kept * entry(of_gradient, c), b = entry(x, i) * entry(of_x, c);
          CHECK(is_near(dx[index(i)], a + b + entry(constant, c),
                        std::abs(a) + std::abs(b) + std::abs(entry(constant, c)), 4));
        }
        check_sum(sum[index(c)], of_g, sizes);
        check_sum(products[index(c)], of_products, product_sizes);
      }
    });
  }
}
