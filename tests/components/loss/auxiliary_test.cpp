// What a model adds to its loss, beside the losses' own means.

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "components/loss/loss.h"
#include "components/tensor/auxiliary_loss.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"

namespace {

using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorMap;

std::shared_ptr<components::loss::Loss> cross_entropy() {
  components::BatchSpec data;
  data.tensors = {{components::kInput, Dtype::kInt64, {kBatch, kTime}, false},
                  {components::kTarget, Dtype::kInt64, {kBatch, kTime}, false}};
  const std::vector<components::TensorSpec> outputs = {{components::kOutput, Dtype::kFloat32, {kBatch, kTime, 2}},
                                                       {components::kAuxiliaryLoss, Dtype::kFloat32, {2}}};
  const auto block = tests::block("loss", "cross_entropy");
  runner::core::Diagnostics diagnostics;
  const auto loss = components::loss::build(block, {outputs, data, block, diagnostics});
  REQUIRE(loss != nullptr);
  return components::loss::with_auxiliary(loss);
}

/// Two rows of three positions, logits that are all 0.
TensorMap batch() {
  TensorMap tensors;
  tensors.set(components::kInput, at::zeros({2, 3}, at::kLong));
  tensors.set(components::kTarget, at::tensor(std::vector<std::int64_t>{0, 1, 0, 1, -100, -100}).view({2, 3}));
  tensors.set(components::kOutput, at::zeros({2, 3, 2}));
  tensors.set(components::kAuxiliaryLoss, at::tensor({0.5F, 2.0F}));
  return tensors;
}

}  // namespace

TEST_CASE("a loss with an auxiliary one is the sum of both means", "[loss][auxiliary]") {
  const auto loss = cross_entropy();
  CHECK(loss->figure_names() == std::vector<std::string>{"aux_loss"});
  TensorMap tensors = batch();
  CHECK(loss->counts(tensors) == std::vector<std::int64_t>{4, 6});
  tensors.set(components::loss::kCountRatios, at::tensor({4.0F / 6.0F}));
  // log 2, and 0.5 of the auxiliary loss whatever its factor was.
  CHECK(loss->sum(tensors).item<double>() / 4 == Approx(0.693147 + 0.5));
  const auto figures = loss->take_figures();
  CHECK(figures.sums == std::vector<double>{12.0});
  CHECK(figures.counts == std::vector<std::int64_t>{6});
  CHECK(components::loss::mean_of(loss->sums(tensors), loss->counts(tensors)) == Approx(0.693147 + 0.5));
}

TEST_CASE("padding has no part in the mean of an auxiliary loss", "[loss][auxiliary]") {
  const auto loss = cross_entropy();
  TensorMap tensors = batch();
  tensors.set(components::kAttentionMask,
              at::tensor(std::vector<std::int64_t>{1, 1, 1, 1, 0, 0}).view({2, 3}).to(at::kBool));
  CHECK(loss->counts(tensors) == std::vector<std::int64_t>{4, 4});
  loss->sums(tensors);
  CHECK(loss->take_figures().counts == std::vector<std::int64_t>{4});
}

TEST_CASE("a single sample has no auxiliary loss", "[loss][auxiliary]") {
  const auto loss = cross_entropy();
  CHECK(loss->of_samples().further_means() == 0);
  CHECK(loss->of_samples().figure_names().empty());
}
