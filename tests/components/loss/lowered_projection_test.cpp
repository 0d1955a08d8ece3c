// A projection that is gathered in bfloat16: losses are those of the float32 weight rounded for the products, and its
// gradient is rounded once, whatever the number of chunks.

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <utility>

#include "components/loss/projected_cross_entropy.h"
#include "components/ops/bf16_weight_cache.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/reused_memory.h"
#include "components/part/embedding.h"
#include "components/part/weight.h"
#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"
#include "tests/support/torch/tensors_torch.h"

namespace components {
namespace {

struct Result {
  double loss;
  at::Tensor dhidden, dweight;
};

Result run(const at::Tensor& hidden_NC, const at::Tensor& weight_VC, const at::Tensor& target) {
  const at::Tensor hidden = hidden_NC.clone().set_requires_grad(true),
                   weight = weight_VC.clone().set_requires_grad(true);
  const Autocast low({.type = AutocastOptions::Type::kBf16});
  REQUIRE(loss::projected_cross_entropy_fits(hidden, weight, 0.0));
  Bf16WeightCache cache;
  ReusedMemory memory;
  const at::Tensor loss = loss::projected_cross_entropy(hidden, weight, cache, memory, target, {});
  loss.backward();
  return {loss.item<double>(), hidden.grad(), weight.grad()};
}

}  // namespace

TEST_CASE("a projection in bfloat16 gives the loss of its float32 one, and a gradient rounded once", "[loss]") {
  pretend_bf16_units(true);
  set_keeps_low_weights(false);
  const auto [rows, classes] = GENERATE(std::pair<std::int64_t, std::int64_t>(8, 100), std::pair(1100, 40000));
  const at::Tensor hidden = at::randn({rows, 32}), weight = at::randn({classes, 32}).mul_(0.3);
  const at::Tensor target = at::randint(classes, {rows}, at::kLong);
  const Result exact = run(hidden, weight, target), low = run(hidden, weight.to(at::kBFloat16), target);
  CHECK(low.loss == exact.loss);
  CHECK(low.dhidden.equal(exact.dhidden));
  CHECK(low.dweight.scalar_type() == at::kBFloat16);
  CHECK(at::allclose(low.dweight.to(at::kFloat), exact.dweight, 4e-3, 1e-6));  // half of the last bit is 2^-9
  set_keeps_low_weights(true);
  pretend_bf16_units({});
}

TEST_CASE("vectors of a table in bfloat16 are widened under autocast, and their gradients summed first", "[model]") {
  part::DrawnWeights weights;
  part::Declared declared(weights);
  const part::Embedding table(declared, "wte", 5, 3, part::normal(1.0));
  const at::Tensor whole = table.weight();
  whole.set_data(whole.detach().to(at::kBFloat16));
  const at::Tensor ids = at::arange(8, at::kLong).remainder(3), gradient = at::randn({8, 3});
  const bool sparse = GENERATE(true, false);
  at::Tensor vectors;
  {
    const Autocast low({.type = AutocastOptions::Type::kBf16});
    vectors = table.forward(ids, sparse);
  }
  CHECK(vectors.scalar_type() == at::kFloat);
  CHECK(vectors.detach().equal(whole.detach().index_select(0, ids).to(at::kFloat)));
  vectors.backward(gradient);
  const at::Tensor sums = at::zeros({5, 3}).index_add_(0, ids, gradient).to(at::kBFloat16);
  const at::Tensor got = whole.grad().is_sparse() ? whole.grad().to_dense() : whole.grad();
  CHECK(got.equal(sums));
}

}  // namespace components
