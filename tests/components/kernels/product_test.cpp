// The product kernel against sums in double precision, at sizes that fill no tile and go over its blocks' borders.

#include "components/kernels/product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <cstdint>

#include "components/products.h"
#include "components/tensors.h"

namespace {

using components::product;
using components::product_into;
using components::kernels::product_kernel;

struct Case {
  std::int64_t rows, columns, depth;
};
constexpr Case kCases[] = {{1, 1, 1},    {12, 32, 16},   {13, 33, 17},   {11, 31, 300}, {97, 70, 257},
                           {96, 513, 9}, {100, 512, 64}, {25, 600, 520}, {200, 40, 256}};

/// [rows, columns], its rows or its columns side by side in memory.
at::Tensor draw(std::int64_t rows, std::int64_t columns, bool turned) {
  return turned ? at::randn({columns, rows}).t() : at::randn({rows, columns});
}

/// That `found` is `times` the product, to what float32 can lose in all: each of the additions rounds by 2^-24 of a sum
/// that is no larger than that of the products' sizes.
void check_product(const at::Tensor& found, const at::Tensor& a, const at::Tensor& b, int times = 1) {
  const at::Tensor high_a = a.to(at::kDouble), high_b = b.to(at::kDouble);
  const double additions = static_cast<double>(times * (a.size(1) + 1));
  const at::Tensor bound = at::matmul(high_a.abs(), high_b.abs()) * (times * additions * 0x1p-24);
  CHECK(((found.to(at::kDouble) - at::matmul(high_a, high_b) * times).abs() <= bound).all().item<bool>());
}

}  // namespace

TEST_CASE("a product is the sum over the depth, whichever way its factors lie in memory", "[kernels][product]") {
  for (const Case& c : kCases) {
    for (const bool a_turned : {false, true}) {
      for (const bool b_turned : {false, true}) {
        DYNAMIC_SECTION(c.rows << "x" << c.columns << "x" << c.depth << " " << a_turned << b_turned) {
          const at::Tensor a = draw(c.rows, c.depth, a_turned), b = draw(c.depth, c.columns, b_turned);
          check_product(product(a, b), a, b);
          // Into columns of a wider matrix, beside which nothing changes.
          const at::Tensor wide = at::randn({c.rows, c.columns + 3});
          const at::Tensor before = wide.clone(), part = wide.narrow(1, 1, c.columns);
          product_into(part, a, b, false);
          check_product(part, a, b);
          product_into(part, a, b, true);
          check_product(part, a, b, 2);
          CHECK(wide.narrow(1, 0, 1).equal(before.narrow(1, 0, 1)));
          CHECK(wide.narrow(1, c.columns + 1, 2).equal(before.narrow(1, c.columns + 1, 2)));
        }
      }
    }
  }
}

TEST_CASE("the bits of a product do not depend on the number of threads", "[kernels][product]") {
  if (product_kernel() == nullptr) return;  // LibTorch's depend on it
  const at::Tensor a = at::randn({150, 600}), b = draw(600, 210, true);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor expected = product(a, b);
  for (const int threads : {2, 3, 7}) {
    at::set_num_threads(threads);
    CHECK(product(a, b).equal(expected));
  }
  at::set_num_threads(before);
}

TEST_CASE("without a kernel LibTorch multiplies", "[kernels][product]") {
  components::kernels::pretend_no_product_kernel(true);
  const at::Tensor a = at::randn({64, 64}), b = at::randn({64, 64});
  CHECK(product_kernel() == nullptr);
  CHECK(product(a, b).equal(at::matmul(a, b)));
  components::kernels::pretend_no_product_kernel(false);
}
