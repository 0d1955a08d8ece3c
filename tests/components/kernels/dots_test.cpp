// Products of rows with rows: against sums in double precision, and to the same bits however they are cut.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/components/kernels/levels.h"

namespace {

using components::kernels::Bf16;
using components::kernels::Dots;
using components::kernels::TransformerLevel;
using tests::kernels::draw;
using tests::kernels::entry;
using tests::kernels::index;

struct Case {
  std::int64_t rows, columns, depth;
};
constexpr Case kCases[] = {{1, 1, 1},   {1, 17, 64}, {2, 9, 33},   {3, 4, 31},    {4, 5, 576},
                           {5, 3, 100}, {7, 50, 70}, {16, 13, 40}, {97, 49, 257}, {100, 130, 48}};

template <typename T>
std::vector<float> product(const TransformerLevel& level, const std::vector<T>& a, const std::vector<T>& b,
                           const Case& c) {
  std::vector<float> out(index(c.rows * c.columns), -1);
  tests::kernels::of_type<T>(level).dots(
      {a.data(), c.depth, b.data(), c.depth, out.data(), c.columns, c.rows, c.columns, c.depth});
  return out;
}

template <typename T>
void check_numbers(const TransformerLevel& level, const Case& c) {
  const std::vector<T> a = draw<T>(c.rows * c.depth, 1), b = draw<T>(c.columns * c.depth, 2);
  const std::vector<float> found = product(level, a, b, c);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      double exact = 0, size = 0;
      for (std::int64_t k = 0; k < c.depth; ++k) {
        const double term = entry(a, i * c.depth + k) * entry(b, j * c.depth + k);
        exact += term;
        size += std::abs(term);
      }
      const auto additions = static_cast<double>(c.depth + 1);
      CHECK(tests::kernels::is_near(found[index(i * c.columns + j)], exact, size, additions));
    }
  }
}

/// One element at a time, and with zeros behind the depth in one of the two.
template <typename T>
void check_cuts(const TransformerLevel& level, const Case& c) {
  const std::vector<T> a = draw<T>(c.rows * c.depth, 3), b = draw<T>(c.columns * c.depth, 4);
  const std::vector<float> whole = product(level, a, b, c);
  const auto& dots = tests::kernels::of_type<T>(level).dots;
  std::vector<float> single(whole.size());
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      dots({a.data() + i * c.depth, 7, b.data() + j * c.depth, 9, &single[index(i * c.columns + j)], 5, 1, 1, c.depth});
    }
  }
  CHECK(whole == single);
  const std::int64_t wide = c.depth + 45;
  std::vector<T> a_wide(index(c.rows * wide)), b_wide = draw<T>(c.columns * wide, 5);
  for (std::int64_t i = 0; i < c.rows; ++i) std::copy_n(a.data() + i * c.depth, c.depth, a_wide.data() + i * wide);
  for (std::int64_t j = 0; j < c.columns; ++j) std::copy_n(b.data() + j * c.depth, c.depth, b_wide.data() + j * wide);
  CHECK(whole == product(level, a_wide, b_wide, {c.rows, c.columns, wide}));
}

}  // namespace

TEST_CASE("products of rows are sums over the depth", "[kernels][dots]") {
  for (const TransformerLevel* level : tests::kernels::transformer_levels()) {
    for (const Case& c : kCases) {
      check_numbers<float>(*level, c);
      check_numbers<Bf16>(*level, c);
    }
  }
}

TEST_CASE("products of rows have the same bits in any cut, and before zeros", "[kernels][dots]") {
  for (const TransformerLevel* level : tests::kernels::transformer_levels()) {
    for (const Case& c : kCases) {
      check_cuts<float>(*level, c);
      check_cuts<Bf16>(*level, c);
    }
  }
}
