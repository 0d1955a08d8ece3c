// PyTorch's communication hooks, case by case, on as many ranks as the case has.

#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "runner/distributed/gradient_buckets.h"
#include "tests/support/golden.h"
#include "tests/support/torch/ranks_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using runner::distributed::CommHookOptions;
using runner::distributed::GradientBuckets;
using runner::distributed::ProcessGroup;
using tests::golden::Json;

/// What the order of the sums changes at most in PowerSGD's results under a wrapper, as a share of the largest number:
/// among the orders that tests/golden/vectors/ddp_comm_hooks_orders.py tries, 7.3 roundings to the 11 bits of fp16 and
/// 9.8 to the 8 of bf16. It is more than the two roundings of one sum, for a P that differs is normalised and
/// multiplied twice, and what a step leaves out is in the next one.
constexpr double kOrdersInFp16 = 8 * 0x1p-11, kOrdersInBf16 = 10 * 0x1p-8;

CommHookOptions options_of(const Json& input) {
  using Hook = CommHookOptions::Hook;
  using Wrapper = CommHookOptions::Wrapper;
  static const std::map<std::string, Hook> hooks = {{"no", Hook::kNone},
                                                    {"fp16", Hook::kFp16},
                                                    {"bf16", Hook::kBf16},
                                                    {"power_sgd", Hook::kPowerSgd},
                                                    {"batched_power_sgd", Hook::kBatchedPowerSgd}};
  static const std::map<std::string, Wrapper> wrappers = {
      {"no", Wrapper::kNone}, {"fp16", Wrapper::kFp16}, {"bf16", Wrapper::kBf16}};
  CommHookOptions options;
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
  const auto exchange = make_comm_hook(group, options_of(input));
  GradientBuckets buckets(group, *exchange, parameters, {});
  const int parts = exchange->averages() ? 1 : group.size();
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

/// PyTorch rebuilds its buckets after the first step, and with another place in a bucket the numbers of three ranks or
/// more are added up in another order: that shows in formats of few digits, and in what is computed of them. Two
/// numbers have one sum. What a cast alone rounds is compared in check_cast().
tests::golden::Tolerance tolerance_of(const Json& input) {
  const std::string hook = input.at("hook"), wrapper = input.at("wrapper");
  if (hook == "no") return {.relative = 1e-6, .absolute = 1e-7, .of_largest = true};
  const bool orders_show = wrapper != "no" && input.at("num_processes") > 2;
  const double of_orders = wrapper == "fp16" ? kOrdersInFp16 : kOrdersInBf16;
  return {.relative = orders_show ? of_orders : 1e-4, .absolute = 1e-7, .of_largest = true};
}

/// Sums that overflow in both directions are no numbers.
bool are_alike(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::optional<at::ScalarType> type_of(const std::string& name) {
  if (name == "fp16") return at::kHalf;
  if (name == "bf16") return at::kBFloat16;
  return std::nullopt;
}

/// What a parameter's gradient can be after a step of a hook that casts: the sum of the ranks' parts in each order. A
/// part is rounded when it is cast, divided and added to; a wrapper rounds before and after.
std::vector<std::vector<double>> sums_in_all_orders(const Json& input, const Json& step, std::size_t parameter) {
  const at::ScalarType type = type_of(input.at("hook")).value();
  const at::ScalarType outer = type_of(input.at("wrapper")).value_or(at::kFloat);
  std::vector<at::Tensor> parts;
  for (const Json& of_rank : step) {
    const at::Tensor gradient = tests::floats(tests::golden::numbers(of_rank.at(parameter)));
    parts.push_back(gradient.to(outer).to(type, false, true).div_(static_cast<std::int64_t>(step.size())));
  }
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<double>> sums;
  do {
    at::Tensor sum = parts[order.front()].clone();
    for (std::size_t i = 1; i < order.size(); ++i) sum.add_(parts[order[i]]);
    sums.push_back(tests::to_numbers(sum.to(outer)));
  } while (std::next_permutation(order.begin(), order.end()));
  return sums;
}

/// That each number is the sum in one of the orders, to the last bit.
void check_cast(const std::vector<double>& numbers, const std::vector<std::vector<double>>& sums) {
  REQUIRE(numbers.size() == sums.front().size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    CAPTURE(i, numbers[i], sums.front()[i]);
    const double number = static_cast<double>(static_cast<float>(numbers[i]));  // 9 digits say which one it is
    CHECK(std::any_of(sums.begin(), sums.end(), [&](const auto& sum) { return are_alike(sum[i], number); }));
  }
}

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
          if (type_of(c.input.at("hook"))) {
            const auto sums = sums_in_all_orders(c.input, c.input.at("grads").at(step), i);
            check_cast(steps[step][i], sums);
            check_cast(tests::golden::numbers(expected), sums);
            continue;
          }
          CHECK(tests::golden::differences("gradient", steps[step][i], expected, tolerance_of(c.input)) == "");
        }
      }
    }
    return true;
  });
}
