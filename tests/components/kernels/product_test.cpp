// The product kernels against sums in double precision, at sizes that fill no tile and go over the blocks' borders.

#include <ATen/Parallel.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "components/kernels/product.h"
#include "components/ops/matmul.h"
#include "components/tensor/tensors.h"

namespace {

using components::matmul_float32;
using components::matmul_into;
using components::product;
using components::kernels::Bf16;
using components::kernels::product_kernel;

struct Case {
  std::int64_t rows, columns, depth;
};
constexpr Case kCases[] = {{1, 1, 1},      {12, 32, 16},   {13, 33, 17},    {11, 31, 300},
                           {97, 70, 257},  {96, 513, 9},   {100, 512, 64},  {25, 600, 520},
                           {200, 40, 256}, {40, 50, 1024}, {30, 260, 1500}, {25, 1060, 40}};

bool has_kernel(at::ScalarType type) {
  return type == at::kFloat ? product_kernel<float>() != nullptr : product_kernel<Bf16>() != nullptr;
}

/// [rows, columns], its rows or its columns side by side in memory.
at::Tensor draw(std::int64_t rows, std::int64_t columns, bool turned, at::ScalarType type) {
  return turned ? at::randn({columns, rows}).to(type).t() : at::randn({rows, columns}).to(type);
}

/// That `found` is `times` the product, to what can be lost in all: each of the additions rounds by 2^-24 of a sum that
/// is no larger than that of the products' sizes. In bfloat16 LibTorch, which multiplies small matrices in any case,
/// rounds the result by 2^-8 once more each time, as is what is kept in it.
void check_product(const at::Tensor& found, const at::Tensor& a, const at::Tensor& b, int times = 1) {
  const at::Tensor high_a = a.to(at::kDouble), high_b = b.to(at::kDouble);
  const double additions = static_cast<double>(times * (a.size(1) + 1));
  const bool ours = has_kernel(at::kBFloat16) && a.numel() * b.size(1) > 1 << 15;
  const bool low = a.scalar_type() == at::kBFloat16 && (found.scalar_type() == at::kBFloat16 || !ours);
  const at::Tensor bound =
      at::matmul(high_a.abs(), high_b.abs()) * (times * (additions * 0x1p-24 + (low ? 0x1p-8 : 0.0)));
  CHECK(((found.to(at::kDouble) - at::matmul(high_a, high_b) * times).abs() <= bound).all().item<bool>());
}

}  // namespace

TEST_CASE("a product is the sum over the depth, whichever way its factors lie in memory", "[kernels][product]") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Case& c : kCases) {
      for (const bool a_turned : {false, true}) {
        for (const bool b_turned : {false, true}) {
          DYNAMIC_SECTION(type << " " << c.rows << "x" << c.columns << "x" << c.depth << " " << a_turned << b_turned) {
            const at::Tensor a = draw(c.rows, c.depth, a_turned, type), b = draw(c.depth, c.columns, b_turned, type);
            CHECK(product(a, b).scalar_type() == type);
            check_product(product(a, b), a, b);
            check_product(matmul_float32(a, b), a, b);
            // Into columns of a wider matrix, beside which nothing changes.
            const at::Tensor wide = at::randn({c.rows, c.columns + 3});
            const at::Tensor before = wide.clone(), part = wide.narrow(1, 1, c.columns);
            matmul_into(part, a, b, false);
            check_product(part, a, b);
            matmul_into(part, a, b, true);
            check_product(part, a, b, 2);
            CHECK(wide.narrow(1, 0, 1).equal(before.narrow(1, 0, 1)));
            CHECK(wide.narrow(1, c.columns + 1, 2).equal(before.narrow(1, c.columns + 1, 2)));
          }
        }
      }
    }
  }
}

TEST_CASE("the bits of a product do not depend on the number of threads", "[kernels][product]") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    if (!has_kernel(type)) continue;  // LibTorch's depend on it
    const at::Tensor a = draw(150, 600, false, type), b = draw(600, 210, true, type);
    const int before = at::get_num_threads();
    at::set_num_threads(1);
    const at::Tensor expected = product(a, b);
    for (const int threads : {2, 3, 7}) {
      at::set_num_threads(threads);
      CHECK(product(a, b).equal(expected));
    }
    at::set_num_threads(before);
  }
}

TEST_CASE("without a kernel LibTorch multiplies", "[kernels][product]") {
  components::kernels::pretend_no_product_kernel(true);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor a = draw(64, 64, false, type), b = draw(64, 64, true, type), out = at::randn({64, 64});
    CHECK_FALSE(has_kernel(type));
    CHECK(product(a, b).equal(at::matmul(a, b)));
    matmul_into(out, a, b, false);
    matmul_into(out, a, b, true);
    check_product(out, a, b, 2);
  }
  components::kernels::pretend_no_product_kernel(false);
}
