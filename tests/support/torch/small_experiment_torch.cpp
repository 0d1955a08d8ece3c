#include "tests/support/torch/small_experiment_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/strategy/make_strategy.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

namespace tests {
namespace {

std::int64_t width(const std::vector<std::vector<float>>& rows) {
  return static_cast<std::int64_t>(rows.front().size());
}

at::Tensor gather(const std::vector<std::vector<float>>& rows, std::span<const std::int64_t> indices) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(indices.size()), width(rows)});
  auto* to = out.mutable_data_ptr<float>();
  for (const std::int64_t i : indices) {
    const auto& row = rows[static_cast<std::size_t>(i)];
    std::memcpy(to, row.data(), row.size() * sizeof(float));
    to += row.size();
  }
  return out;
}

}  // namespace

Rows::Rows(std::vector<std::vector<float>> x, std::vector<std::vector<float>> y) : x_(std::move(x)), y_(std::move(y)) {
  using namespace components;
  signature_.tensors = {{kInput, Dtype::kFloat32, {kBatch, width(x_)}, false},
                        {kTarget, Dtype::kFloat32, {kBatch, width(y_)}, false}};
}

void Rows::fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const {
  batch.set(components::kInput, gather(x_, indices));
  batch.set(components::kTarget, gather(y_, indices));
}

std::unique_ptr<runner::train::Experiment> make_experiment(const Setup& setup) {
  auto experiment = std::make_unique<runner::train::Experiment>();
  experiment->train_data = std::make_shared<Rows>(setup.x, setup.y);
  const auto& signature = experiment->train_data->signature();
  runner::core::Diagnostics diagnostics;
  const runner::core::Node model = block("model", setup.model);
  components::part::DrawnWeights weights;
  experiment->model = components::model::build(model, {signature, weights, model, diagnostics});
  REQUIRE(experiment->model != nullptr);
  const runner::core::Node loss = block("loss", setup.loss);
  experiment->loss = components::loss::build(loss, {experiment->model->outputs(), signature, loss, diagnostics});
  const runner::core::Node optimizer = block("optimizer", setup.optimizer);
  experiment->optimizer = components::optimizer::build(
      optimizer, {components::optimizer::make_param_groups(optimizer, experiment->model->parameters(), diagnostics)});
  experiment->steps_in_backward = experiment->optimizer->steps_in_backward();
  runner::train::set_strategy(*experiment, runner::train::make_strategy(*experiment));
  experiment->scheduler = components::lr_scheduler::build(block("lr_scheduler", setup.scheduler), {});
  REQUIRE_FALSE(diagnostics.has_errors());

  const at::NoGradGuard no_grad;
  const float* from = setup.weights.data();
  for (auto& parameter : experiment->model->parameters()) {
    std::memcpy(parameter.tensor.mutable_data_ptr<float>(), from, parameter.tensor.nbytes());
    from += parameter.tensor.numel();
  }
  REQUIRE(from == setup.weights.data() + setup.weights.size());
  return experiment;
}

std::vector<double> flat_weights(const runner::train::Experiment& experiment) {
  std::vector<double> flat;
  for (const auto& parameter : experiment.model->parameters()) {
    const std::vector<double> numbers = to_numbers(parameter.tensor);
    flat.insert(flat.end(), numbers.begin(), numbers.end());
  }
  return flat;
}

}  // namespace tests
