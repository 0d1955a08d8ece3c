// Accelerate's accumulation and PyTorch's DDP on several ranks, case by case: whole trajectories, gradients after each
// micro-batch, and ranks that run out of batches.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "runner/train/data/batch_shards.h"
#include "runner/train/step/stepper.h"
#include "runner/train/strategy/rank_gradients.h"
#include "tests/support/golden.h"
#include "tests/support/torch/ranks_torch.h"
#include "tests/support/torch/recipe_experiment_torch.h"
#include "tests/support/torch/small_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace runner::train {
namespace {

using distributed::ProcessGroup;
using nlohmann::json;
using tests::flat_weights;
using tests::make_experiment;
using tests::Setup;

constexpr tests::golden::Tolerance kTolerance = {.relative = 1e-5, .absolute = 1e-6};

/// What a rank found, or where it first differed.
using Report = std::string;

void note(Report& report, const std::string& what, const std::vector<double>& got, const json& expected) {
  if (report.empty()) report = tests::golden::differences(what, got, expected, kTolerance);
}

/// The samples in the order in which even batches deal them out, those that are repeated among them: batch i is rank
/// i mod n's.
std::vector<std::int64_t> dealt_samples(std::int64_t samples, std::int64_t batch_size, int ranks) {
  std::vector<IndexBatch> batches;
  for (std::int64_t from = 0; from < samples; from += batch_size) {
    batches.emplace_back(static_cast<std::size_t>(std::min(batch_size, samples - from)));
    std::iota(batches.back().begin(), batches.back().end(), from);
  }
  std::vector<std::vector<IndexBatch>> by_rank;
  for (int rank = 0; rank < ranks; ++rank) {
    by_rank.push_back(
        shard_batches(batches, {.num_processes = ranks, .process_index = rank, .batch_size = batch_size}));
  }
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < by_rank.front().size(); ++i) {
    for (const auto& of_rank : by_rank) order.insert(order.end(), of_rank[i].begin(), of_rank[i].end());
  }
  return order;
}

Setup setup_of(const json& input, int ranks) {
  Setup setup;
  const auto x = input.at("x").get<std::vector<std::vector<float>>>();
  const auto y = input.at("y").get<std::vector<std::vector<float>>>();
  for (const std::int64_t i : dealt_samples(static_cast<std::int64_t>(x.size()), input.at("batch_size"), ranks)) {
    setup.x.push_back(x[static_cast<std::size_t>(i)]);
    setup.y.push_back(y[static_cast<std::size_t>(i)]);
  }
  setup.model = "{type: mlp, hidden: [" + input.at("dims").at(1).dump() + "], activation: tanh}";
  setup.optimizer = "{type: sgd, lr: 0.1}";
  if (input.contains("optimizer")) {
    json optimizer = input.at("optimizer");
    std::string type = optimizer.at("name");
    std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
    optimizer.erase("name");
    optimizer["type"] = type;
    setup.optimizer = optimizer.dump();
  }
  setup.weights = input.at("initial_weights").get<std::vector<float>>();
  return setup;
}

Report trajectory(const json& input, const json& expected, Experiment& experiment, ProcessGroup& group) {
  const auto rank = static_cast<std::size_t>(group.rank());
  tests::join(experiment, group);
  StepperOptions options;
  options.accumulation_steps = input.at("accumulation_steps");
  options.window_batches = options.accumulation_steps * group.size();
  options.schedule.num_processes = group.size();
  options.mean = WindowMean::kMicroBatches;
  options.loader.micro_batch_size = input.at("batch_size");
  if (!input.at("clip_norm").is_null()) options.clip.norm = input.at("clip_norm").get<double>();
  if (!input.at("clip_value").is_null()) options.clip.value = input.at("clip_value").get<double>();
  options.clip.norm_type = tests::flatten(input.at("norm_type")).front();
  Report report;
  {
    Stepper stepper(experiment, options);
    std::vector<double> losses, norms, after_first;
    while (stepper.loader().position().epoch < input.at("epochs").get<std::int64_t>()) {
      const StepResult result = stepper.step(false);
      losses.insert(losses.end(), result.micro_losses.begin(), result.micro_losses.end());
      if (result.grad_norm) norms.push_back(*result.grad_norm);
      if (after_first.empty()) after_first = flat_weights(experiment);
    }
    note(report, "losses", losses, expected.at("losses").at(rank));
    if (options.clip.norm) note(report, "norms", norms, expected.at("norms"));
    note(report, "after the first step", after_first, expected.at("after_first_step"));
    note(report, "at the end", flat_weights(experiment), expected.at("final"));
  }
  tests::leave(experiment);
  return report;
}

std::vector<double> flat_gradients(const std::vector<components::NamedTensor>& parameters, double factor) {
  std::vector<double> flat;
  for (const auto& parameter : parameters) {
    for (const double number : tests::to_numbers(parameter.tensor.grad())) flat.push_back(number * factor);
  }
  return flat;
}

/// The gradients after each micro-step. What a rank alone has so far is compared where nothing is exchanged yet.
Report gradients(const json& input, const json& expected, Experiment& experiment, ProcessGroup& group) {
  const std::int64_t batch_size = input.at("batch_size"), steps = input.at("accumulation_steps");
  const auto parameters = experiment.model->parameters();
  const bool each = input.at("sync_each_batch");
  const auto& flags = expected.at("sync_flags");
  DdpOptions options;
  options.sync_each_batch = each;
  RankGradients shared(group, parameters, options, 0);
  const double weight = 1.0 / static_cast<double>(steps * group.size());
  const auto pass = [&](std::size_t micro_step) {
    const auto batch = static_cast<std::int64_t>(micro_step) * group.size() + group.rank();
    std::vector<std::int64_t> indices(static_cast<std::size_t>(batch_size));
    std::iota(indices.begin(), indices.end(), batch * batch_size);
    components::TensorMap tensors;
    experiment.train_data->fetch(indices, tensors);
    experiment.model->forward(tensors);
    const at::Tensor sum = experiment.loss->sum(tensors);
    torch::autograd::backward({sum * (weight / static_cast<double>(experiment.loss->count(tensors)))}, {});
  };
  Report report;
  std::size_t window = 0;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const bool exchanged = each || flags.at(i).get<bool>();
    const auto own = static_cast<std::int64_t>(i - window + 1);
    for (const auto& parameter : parameters) parameter.tensor.mutable_grad().reset();
    for (std::int64_t made = 1; made <= own; ++made) {
      if (exchanged) shared.begin_pass(made == own);
      pass(window + static_cast<std::size_t>(made) - 1);
      if (exchanged) shared.end_pass(made == own);
    }
    if (exchanged) shared.finish(own, {});
    note(report, "micro-step " + std::to_string(i), flat_gradients(parameters, exchanged ? 1.0 : group.size()),
         expected.at("grads").at(i).at(static_cast<std::size_t>(group.rank())));
    if (flags.at(i).get<bool>()) window = i + 1;
  }
  return report;
}

/// A rank that has run out of batches continues with the others, and adds nothing.
Report join(const json& input, const json& expected, ProcessGroup& group) {
  const auto batches = input.at("batches").get<std::vector<std::int64_t>>();
  const double lr = input.at("lr");
  const std::vector<components::NamedTensor> parameters = {
      {"w", (at::ones({1}) * input.at("initial_weight").get<double>()).set_requires_grad(true)}};
  at::Tensor w = parameters.front().tensor;
  RankGradients shared(group, parameters, {}, 0);
  std::vector<double> weights;
  for (std::int64_t b = 0; b < *std::max_element(batches.begin(), batches.end()); ++b) {
    const std::int64_t own = b < batches[static_cast<std::size_t>(group.rank())] ? 1 : 0;
    const auto active = std::count_if(batches.begin(), batches.end(), [b](std::int64_t count) { return b < count; });
    const double divisor = input.at("divisor") == "initial" ? group.size() : static_cast<double>(active);
    if (own > 0) {
      shared.begin_pass(true);
      torch::autograd::backward({((w * static_cast<double>(group.rank() + 1 + b) - 2).square() / divisor).sum()}, {});
      shared.end_pass(true);
    }
    shared.finish(1, {});
    const at::NoGradGuard no_grad;
    w.sub_(w.grad() * lr);
    w.mutable_grad().reset();
    if (own > 0) weights.push_back(w.item<double>());
  }
  Report report;
  const auto rank = static_cast<std::size_t>(group.rank());
  note(report, "weights", weights, expected.at("weights").at(rank));
  note(report, "final", tests::to_numbers(w), json{expected.at("final").at(rank)});
  return report;
}

}  // namespace

TEST_CASE("accumulation over ranks agrees with Accelerate on every vector", "[golden][gradient_accumulation]") {
  const auto check = [](const tests::GoldenCase& c) {
    const int size = c.input.at("num_processes");
    // Assertions, and what builds a model, are for one thread: ranks report, the test judges.
    std::vector<std::unique_ptr<Experiment>> experiments;
    for (int rank = 0; rank < size && c.kind != "join"; ++rank) {
      experiments.push_back(make_experiment(setup_of(c.input, size)));
    }
    std::vector<Report> reports(static_cast<std::size_t>(size));
    tests::run_ranks({size}, [&](ProcessGroup& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      reports[rank] = c.kind == "join"         ? join(c.input, c.expected, group)
                      : c.kind == "trajectory" ? trajectory(c.input, c.expected, *experiments[rank], group)
                                               : gradients(c.input, c.expected, *experiments[rank], group);
    });
    for (const Report& report : reports) CHECK(report == "");
    return true;
  };
  const auto has_ranks = [](const tests::GoldenCase& c) { return c.input.value("num_processes", 1) > 1; };
  tests::for_each_case("gradient_accumulation", check, has_ranks);
}

}  // namespace runner::train
