// Models of Transformers folders against what Transformers computes of them: logits, loss, the gradient of every
// parameter, and weights after five AdamW steps. tests/parity/make.py wrote the folders of tests/parity/models.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "components/loss/loss.h"
#include "components/ops/kernel_policy.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/checkpoint/init_from.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/pretrained/model_type.h"
#include "runner/train/experiment/experiment.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"
#include "tests/support/torch/built_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

namespace fs = std::filesystem;

using components::NamedTensor;
using components::TensorMap;
using runner::checkpoint::TensorSource;
using runner::pretrained::WeightRule;

/// Shares of the largest entry.
constexpr double kBound = 1e-4, kAfterSteps = 1e-3;

struct Plain {
  explicit Plain(bool plain) { components::set_fused_kernels(!plain); }
  ~Plain() { components::set_fused_kernels(true); }
};

std::vector<std::string> folders() {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(tests::source_dir() + "/tests/parity/models")) {
    if (entry.is_directory()) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::unique_ptr<runner::train::Experiment> load(const std::string& folder) {
  auto experiment = tests::experiment_of("init_from: " + folder + "\ndata: {train: {type: ids, path: " + folder +
                                         "/ids.jsonl}}\noptimizer: {type: adamw, lr: 0.001}\n"
                                         "training: {max_steps: 1, micro_batch_size: 2}\n");
  const runner::resolve::Recipe& recipe = experiment->recipe;
  runner::core::Diagnostics diagnostics;
  const auto weights = runner::checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root,
                                                          *experiment->model, recipe.output_dir, diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(weights);
  CHECK(weights->filled == weights->tensors);
  runner::checkpoint::load_init_weights(*weights, *experiment->model);
  return experiment;
}

/// The tensor of the model that Transformers keeps as these, with `prefix` before their names; undefined when there is
/// none.
at::Tensor expected_of(const TensorSource& source, const std::string& model_type, const std::string& prefix,
                       const std::string& name) {
  for (const WeightRule& rule : runner::pretrained::find_model_type(model_type)->weights) {
    const auto number = runner::pretrained::number_in(rule.name, name);
    if (!number) continue;
    std::vector<at::Tensor> parts;
    for (const std::string& from : rule.from) {
      const std::string there = prefix + runner::pretrained::with_number(from, *number);
      if (source.find(there) != nullptr) parts.push_back(source.tensor(there));
    }
    if (parts.size() != rule.from.size()) return {};
    const at::Tensor whole = parts.size() == 1 ? parts.front() : at::cat(parts, 0);
    return rule.transposed ? whole.t() : whole;
  }
  return {};
}

double distance(const at::Tensor& found, const at::Tensor& expected) {
  return (found.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
}

std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = first; i < end; ++i) found.push_back(i);
  return found;
}

/// Mean loss of a batch, with its graph.
at::Tensor mean_loss(const runner::train::Experiment& experiment, TensorMap batch) {
  const auto count = static_cast<double>(experiment.loss->count(batch));
  experiment.model->forward_for_loss(batch);
  return experiment.loss->sum(batch, 1.0 / count) / count;
}

void check_batch(const runner::train::Experiment& experiment, const TensorSource& expected, const std::string& type,
                 const std::string& prefix, const TensorMap& batch) {
  TensorMap tensors = batch;
  {
    const at::NoGradGuard no_grad;
    experiment.model->forward(tensors);
  }
  const at::Tensor logits = expected.tensor(prefix + "logits"), real = batch.at(components::kTarget);
  const double largest = logits.abs().max().item<double>();
  const at::Tensor* mask = batch.find(components::kAttentionMask);
  at::Tensor difference = (tensors.at(components::kOutput) - logits).abs().amax(-1);
  if (mask != nullptr) difference = difference.masked_fill(mask->logical_not(), 0);
  CHECK(difference.max().item<double>() <= kBound * largest);

  tests::clear_gradients(*experiment.model);
  const at::Tensor mean = mean_loss(experiment, batch);
  mean.backward();
  CHECK(mean.item<double>() == Approx(expected.tensor(prefix + "loss").item<double>()).epsilon(kBound));
  double all = 0;
  for (const NamedTensor& parameter : experiment.model->parameters()) {
    all = std::max(all, parameter.tensor.grad().abs().max().item<double>());
  }
  for (const NamedTensor& parameter : experiment.model->parameters()) {
    INFO(prefix << "grad/" << parameter.name);
    const at::Tensor wanted = expected_of(expected, type, prefix + "grad/", parameter.name);
    REQUIRE(wanted.defined());
    // A gradient that is zero but for rounding has no size of its own.
    const double size = std::max(wanted.abs().max().item<double>(), 1e-3 * all);
    CHECK(distance(parameter.tensor.grad(), wanted) <= kBound * size);
  }
}

/// Where a gradient is zero but for rounding AdamW makes steps of whole lr of it, in any direction.
void check_steps(const runner::train::Experiment& experiment, const TensorSource& expected, const std::string& type,
                 const TensorMap& batch) {
  constexpr int kSteps = 5;
  constexpr double kRate = 1e-3;
  const auto node =
      tests::block("optimizer", "{type: adamw, lr: 0.001, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.01}");
  runner::core::Diagnostics diagnostics;
  const auto parameters = experiment.model->parameters();
  const auto optimizer =
      components::optimizer::build(node, {components::optimizer::make_param_groups(node, parameters, diagnostics)});
  for (int step = 0; step < kSteps; ++step) {
    tests::clear_gradients(*experiment.model);
    mean_loss(experiment, batch).backward();
    optimizer->step();
  }
  for (const NamedTensor& parameter : parameters) {
    INFO("after/" << parameter.name);
    const at::Tensor wanted = expected_of(expected, type, "unpadded/after/", parameter.name);
    const at::Tensor gradient = expected_of(expected, type, "unpadded/grad/", parameter.name).abs();
    REQUIRE(wanted.defined());
    // What is no number there hangs on rounding in Transformers too.
    const at::Tensor difference = (parameter.tensor.detach() - wanted).abs().nan_to_num(0);
    const at::Tensor sure = gradient > 1e-4 * gradient.max();
    CHECK(difference.masked_fill(sure.logical_not(), 0).max().item<double>() <=
          kAfterSteps * wanted.nan_to_num(0).abs().max().item<double>());
    CHECK(difference.max().item<double>() <= 2 * kSteps * kRate);
  }
}

}  // namespace

TEST_CASE("models of Transformers folders compute what Transformers computes", "[golden][pretrained]") {
  for (const std::string& folder : folders()) {
    for (const bool plain : {false, true}) {
      DYNAMIC_SECTION(fs::path(folder).filename().string() << (plain ? ", plain operations" : "")) {
        const Plain as_asked(plain);
        const auto experiment = load(folder);
        const std::string type = experiment->recipe.model.find("config")->find("model_type")->as_string();
        const TensorSource expected(folder + "/expected.safetensors");
        TensorMap unpadded, padded;
        const std::int64_t first = expected.tensor("unpadded/logits").size(0);
        experiment->train_data->fetch(numbers(0, first), unpadded);
        experiment->train_data->fetch(numbers(first, experiment->train_data->size()), padded);
        check_batch(*experiment, expected, type, "unpadded/", unpadded);
        check_batch(*experiment, expected, type, "padded/", padded);
        check_steps(*experiment, expected, type, unpadded);
      }
    }
  }
}
