#include "components/model/late_gradient.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <catch2/catch.hpp>

#include "components/tensor/tensors.h"

using components::model::with_late_gradient;

TEST_CASE("a tied weight's sparse gradient is added to the dense one without a copy", "[model][late_gradient]") {
  at::manual_seed(3);
  const at::Tensor weight = at::randn({6, 4}).set_requires_grad(true), factor = at::randn({6, 4});
  const at::Tensor ids = at::tensor({1, 5, 1}, at::kLong);
  const at::Tensor rows = at::embedding(weight, ids, -1, false, /*sparse=*/true);
  const at::Tensor late = with_late_gradient(weight);
  CHECK(late.const_data_ptr() == weight.const_data_ptr());
  const void* dense = nullptr;
  late.register_hook([&dense](const at::Tensor& gradient) { dense = gradient.const_data_ptr(); });
  // The dense gradient is there first, as that of a head is.
  ((late * factor).sum() + rows.sum()).backward();
  CHECK(weight.grad().const_data_ptr() == dense);
  at::Tensor expected = factor.clone();
  for (const int row : {1, 5, 1}) expected[row] += 1;
  CHECK(weight.grad().equal(expected));
}

TEST_CASE("changes of a weight show in its other name, and without a graph there is none", "[model][late_gradient]") {
  const at::Tensor weight = at::randn({3, 2}).set_requires_grad(true);
  const at::Tensor late = with_late_gradient(weight);
  const at::NoGradGuard no_grad;
  const auto version = late._version();
  weight.add_(1.0);
  CHECK(late._version() > version);  // by which Bf16WeightCache knows that its copy is stale
  CHECK(with_late_gradient(weight).is_same(weight));
}
