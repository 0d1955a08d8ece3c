// PyTorch's communication hooks, case by case, on as many ranks as the case has.

#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "runner/distributed/gradient_buckets.h"
#include "tests/support/golden.h"
#include "tests/support/torch/ranks_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using runner::distributed::ExchangeOptions;
using runner::distributed::GradientBuckets;
using runner::distributed::ProcessGroup;
using tests::golden::Json;

constexpr double kUnitsInTheLastPlace = 8;

ExchangeOptions options_of(const Json& input) {
  using Hook = ExchangeOptions::Hook;
  using Wrapper = ExchangeOptions::Wrapper;
  static const std::map<std::string, Hook> hooks = {{"no", Hook::kNone},
                                                    {"fp16", Hook::kFp16},
                                                    {"bf16", Hook::kBf16},
                                                    {"power_sgd", Hook::kPowerSgd},
                                                    {"batched_power_sgd", Hook::kBatchedPowerSgd}};
  static const std::map<std::string, Wrapper> wrappers = {
      {"no", Wrapper::kNone}, {"fp16", Wrapper::kFp16}, {"bf16", Wrapper::kBf16}};
  ExchangeOptions options;
  options.hook = hooks.at(input.at("hook"));
  options.wrapper = wrappers.at(input.at("wrapper"));
  const Json& state = input.at("options");
  auto& power_sgd = options.power_sgd;
  power_sgd.batched = options.hook == Hook::kBatchedPowerSgd;
  power_sgd.rank = state.value("matrix_approximation_rank", power_sgd.rank);
  power_sgd.start_iter = state.value("start_powerSGD_iter", power_sgd.start_iter);
  power_sgd.min_compression_rate = state.value("min_compression_rate", power_sgd.min_compression_rate);
  power_sgd.use_error_feedback = state.value("use_error_feedback", power_sgd.use_error_feedback);
  power_sgd.warm_start = state.value("warm_start", power_sgd.warm_start);
  power_sgd.epsilon = state.value("orthogonalization_epsilon", power_sgd.epsilon);
  power_sgd.seed = state.value("random_seed", power_sgd.seed);
  return options;
}

/// Of each step and parameter, on one rank.
std::vector<std::vector<std::vector<double>>> gradients_of(const Json& input, ProcessGroup& group) {
  std::vector<at::Tensor> parameters;
  for (const Json& shape : input.at("shapes")) {
    parameters.push_back(at::zeros(shape.get<std::vector<std::int64_t>>()).set_requires_grad(true));
  }
  const auto exchange = make_exchange(group, options_of(input));
  GradientBuckets buckets(group, *exchange, parameters, {});
  const int parts = exchange->takes_mean() ? 1 : group.size();
  std::vector<std::vector<std::vector<double>>> steps;
  for (const Json& step : input.at("grads")) {
    const Json& own = step.at(static_cast<std::size_t>(group.rank()));
    for (at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    buckets.begin();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      // What the ranks have are parts of a sum, where the exchange takes no mean.
      const at::Tensor gradient = tests::floats(tests::golden::numbers(own.at(i))).reshape(parameters[i].sizes());
      torch::autograd::backward({(parameters[i] * gradient / parts).sum()}, {});
    }
    buckets.finish({});
    std::vector<std::vector<double>>& found = steps.emplace_back();
    for (const at::Tensor& parameter : parameters) found.push_back(tests::to_numbers(parameter.grad()));
  }
  return steps;
}

/// PyTorch cuts its buckets anew after the first step, and with another place in a bucket the numbers of three ranks or
/// more are added up in another order: that shows in formats of few digits, and in what is computed of them.
tests::golden::Tolerance tolerance_of(const Json& input) {
  const std::string hook = input.at("hook"), wrapper = input.at("wrapper");
  tests::golden::Tolerance tolerance = {.absolute = 1e-7, .of_largest = true};
  double& relative = tolerance.relative;
  relative = hook == "no" ? 1e-6 : hook == "fp16" ? 1e-3 : hook == "bf16" ? 1e-2 : 1e-4;
  if (hook == "no" || input.at("num_processes") == 2) return tolerance;
  if (hook == "fp16" || wrapper == "fp16") relative = std::max(relative, kUnitsInTheLastPlace * 0x1p-10);
  if (hook == "bf16" || wrapper == "bf16") relative = std::max(relative, kUnitsInTheLastPlace * 0x1p-7);
  return tolerance;
}

/// Sums that overflow in both directions are no numbers.
bool are_alike(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE("communication hooks agree with PyTorch on every vector", "[golden][ddp_comm_hooks]") {
  tests::for_each_case("ddp_comm_hooks", [](const tests::GoldenCase& c) {
    const int size = c.input.at("num_processes");
    std::vector<std::vector<std::vector<std::vector<double>>>> found(static_cast<std::size_t>(size));
    tests::run_ranks({size}, [&](ProcessGroup& group) {
      found[static_cast<std::size_t>(group.rank())] = gradients_of(c.input, group);
    });
    for (const auto& steps : found) {
      for (std::size_t step = 0; step < steps.size(); ++step) {
        for (std::size_t i = 0; i < steps[step].size(); ++i) {
          INFO("step " << step << ", parameter " << i);
          const auto& firsts = found.front()[step][i];
          CHECK(std::equal(steps[step][i].begin(), steps[step][i].end(), firsts.begin(), firsts.end(), are_alike));
          const Json& expected = c.expected.at("result").at(step).at(i);
          CHECK(tests::golden::differences("gradient", steps[step][i], expected, tolerance_of(c.input)) == "");
        }
      }
    }
    return true;
  });
}
