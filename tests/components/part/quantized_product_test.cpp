#include "components/part/quantized_product.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "components/kernels/four_bit.h"

namespace {

using components::part::QuantizedForm;
using components::part::QuantizedProduct;

/// W as the definition has it: of each block of a layer the code whose value, times the block's scale, is nearest.
at::Tensor by_definition(const at::Tensor& weight) {
  at::Tensor found = weight.flatten().clone();
  for (std::int64_t begin = 0; begin < found.numel(); begin += 64) {
    const at::Tensor block = found.narrow(0, begin, std::min<std::int64_t>(64, found.numel() - begin));
    const float scale = block.abs().max().item<float>();
    for (std::int64_t i = 0; i < block.numel(); ++i) {
      const float x = block[i].item<float>() / scale;
      const auto& values = components::kernels::kNf4.values;
      const auto nearest = std::min_element(values.begin(), values.end(),
                                            [x](float a, float b) { return std::abs(a - x) < std::abs(b - x); });
      block[i].fill_(*nearest * scale);
    }
  }
  return found.view(weight.sizes());
}

/// The same in 8 bits: of each row, as float16 holds it.
at::Tensor by_rows(const at::Tensor& weight) {
  const at::Tensor low = weight.to(at::kHalf).to(at::kFloat), absmax = low.abs().amax({1}, true);
  return (low * (127.0F / absmax)).round() * absmax / 127.0F;
}

double distance(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace

TEST_CASE("a product in 4 bits multiplies by the nearest values", "[part][quantization]") {
  // Rows that begin in the middle of a block and of a piece, and layers of unlike height.
  for (const std::int64_t in : {16, 20, 64, 150}) {
    CAPTURE(in);
    const std::vector<std::int64_t> rows = {16, 8, 70};
    QuantizedProduct product({.rows = rows}, 94, in, false);
    const at::Tensor weight = at::randn({94, in});
    product.fill(weight);
    const at::Tensor expected = at::cat({by_definition(weight.narrow(0, 0, 16)), by_definition(weight.narrow(0, 16, 8)),
                                         by_definition(weight.narrow(0, 24, 70))});
    CHECK(distance(product.weight(0, 94, false), expected) < 1e-6);
    CHECK(distance(product.weight(14, 12, false), expected.narrow(0, 14, 12)) < 1e-6);
    const at::Tensor x = at::randn({5, in}), y = at::linear(x, expected), dy = at::randn({5, 94});
    CHECK(distance(product.forward(x, {}), y) < 1e-4);
    CHECK(distance(product.rows(x), y) < 1e-4);
    at::Tensor of_node;
    const auto backward = product.in_node(x, of_node, true);
    CHECK(distance(of_node, y) < 1e-4);
    CHECK(distance(backward->to_input(dy), dy.matmul(expected)) < 1e-4);
    at::Tensor low;
    product.in_node(x.to(at::kBFloat16), low, false);
    CHECK(distance(low.to(at::kFloat), y) < 0.02 * y.abs().max().item<double>());
  }
}

TEST_CASE("a product in 8 bits rounds both sides, but for large features", "[part][quantization]") {
  const at::Tensor weight = at::randn({94, 150}), x = at::randn({5, 150});
  x.select(1, 7).fill_(50.0F);
  for (const double threshold : {0.0, 6.0}) {
    CAPTURE(threshold);
    QuantizedProduct product({.kind = QuantizedForm::Kind::kInt8, .threshold = threshold, .rows = {16, 78}}, 94, 150,
                             false);
    product.fill(weight);
    const at::Tensor expected = by_rows(weight);
    CHECK(distance(product.weight(0, 94, false), expected) < 1e-6);
    CHECK(distance(product.forward(x, {}), at::linear(x, expected)) < 1e-3);  // in a training
    product.set_training(false);
    at::Tensor read = by_rows(x);
    if (threshold > 0) {
      at::Tensor others = x.clone();
      others.select(1, 7).zero_();
      read = by_rows(others);
      read.select(1, 7).copy_(x.select(1, 7));
    }
    const at::Tensor y = at::linear(read, expected), dy = at::randn({5, 94});
    CHECK(distance(product.forward(x, {}), y) < 1e-3);
    CHECK(distance(product.rows(x), y) < 1e-3);
    at::Tensor of_node;
    const auto backward = product.in_node(x, of_node, true);
    CHECK(distance(of_node, y) < 1e-3);
    CHECK(distance(backward->to_input(dy), dy.matmul(expected)) < 1e-4);
  }
}

TEST_CASE("the number of threads changes no quantized weight", "[part][quantization]") {
  using Kind = QuantizedForm::Kind;
  const at::Tensor weight = at::randn({700, 300});
  const int threads = at::get_num_threads();
  for (const Kind kind : {Kind::kNf4, Kind::kFp4, Kind::kInt8}) {
    QuantizedProduct alone({.kind = kind, .double_quant = true, .rows = {700}}, 700, 300, false);
    QuantizedProduct together({.kind = kind, .double_quant = true, .rows = {700}}, 700, 300, false);
    at::set_num_threads(1);
    alone.fill(weight);
    at::set_num_threads(3);
    together.fill(weight);
    at::set_num_threads(threads);
    CHECK(alone.weight(0, 700, false).equal(together.weight(0, 700, false)));
  }
}
