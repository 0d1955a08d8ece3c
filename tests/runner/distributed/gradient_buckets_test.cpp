#include "runner/distributed/gradient_buckets.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/autograd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <mutex>

#include "tests/support/torch/ranks_torch.h"

namespace {

using runner::distributed::GradientBuckets;
using runner::distributed::make_comm_hook;
using runner::distributed::ProcessGroup;

struct Parameters {
  // As a model lists them: the last one is the first to get a gradient.
  at::Tensor first = at::ones({40, 3}).set_requires_grad(true);
  at::Tensor frozen = at::ones({5});
  at::Tensor half = at::ones({7}, at::kBFloat16).set_requires_grad(true);
  at::Tensor unused = at::ones({2}).set_requires_grad(true);
  at::Tensor last = at::ones({64, 64}).t().set_requires_grad(true);

  std::vector<at::Tensor> all() const { return {first, frozen, half, unused, last}; }
  void backward(double factor) const {
    const at::Tensor sum = (first.sum() + half.sum().to(at::kFloat) + last.sum()) * factor;
    torch::autograd::backward({sum}, {});
  }
};

bool holds(const at::Tensor& gradient, const at::Tensor& parameter, double value) {
  return gradient.defined() && gradient.scalar_type() == parameter.scalar_type() &&
         at::equal(gradient, at::full_like(parameter, value));
}

}  // namespace

TEST_CASE("gradients are sums over ranks, however many passes each of them makes", "[distributed][buckets]") {
  const std::int64_t bucket_bytes = GENERATE(1, 1000, 25 << 20);
  CAPTURE(bucket_bytes);
  constexpr int kRanks = 3;
  std::mutex mutex;
  int right = 0;
  tests::run_ranks({kRanks}, [&](ProcessGroup& group) {
    const Parameters parameters;
    const auto exchange = make_comm_hook(group, {});
    GradientBuckets buckets(group, *exchange, parameters.all(), {bucket_bytes, 1});
    for (int step = 1; step <= 3; ++step) {
      for (at::Tensor parameter : parameters.all()) parameter.mutable_grad().reset();
      // Rank r makes r passes: rank 0 has nothing to do.
      for (int pass = 1; pass <= group.rank(); ++pass) {
        if (pass == group.rank()) buckets.begin();
        parameters.backward(step);
      }
      if (group.rank() == 0) buckets.begin();
      buckets.finish(std::vector<double>{0.0});
      const double sum = step * (1 + 2);
      const bool fits = holds(parameters.first.grad(), parameters.first, sum) &&
                        holds(parameters.half.grad(), parameters.half, sum) &&
                        holds(parameters.last.grad(), parameters.last, sum) && !parameters.unused.grad().defined() &&
                        !parameters.frozen.grad().defined();
      const std::lock_guard lock(mutex);
      right += fits ? 1 : 0;
    }
  });
  CHECK(right == 3 * kRanks);
}

TEST_CASE("notes of each rank arrive to the last bit", "[distributed][buckets]") {
  const std::vector<double> notes = {M_PI, 1e-30, -0.1, 123456789.123456789, std::numeric_limits<double>::infinity(),
                                     0};
  std::mutex mutex;
  std::vector<std::vector<std::vector<double>>> seen;
  tests::run_ranks({2}, [&](ProcessGroup& group) {
    const Parameters parameters;
    const auto exchange = make_comm_hook(group, {});
    GradientBuckets buckets(group, *exchange, parameters.all(), {1 << 20, notes.size()});
    buckets.begin();
    std::vector<double> mine = notes;
    for (double& note : mine) note *= group.rank() == 0 ? 1.0 : -3.0;
    auto all = buckets.finish(mine);
    const std::lock_guard lock(mutex);
    seen.push_back(std::move(all));
  });
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == seen[1]);
  for (std::size_t i = 0; i < notes.size(); ++i) {
    CHECK(seen[0][0][i] == notes[i]);
    CHECK(seen[0][1][i] == -3.0 * notes[i]);
  }
}

TEST_CASE("of a model with frozen parameters the gradients of the others alone are exchanged",
          "[distributed][buckets]") {
  tests::run_ranks({1}, [&](ProcessGroup& group) {
    const at::Tensor base = at::ones({1000, 1000}), a = at::ones({4, 1000}).set_requires_grad(true);
    const at::Tensor b = at::ones({1000, 4}).set_requires_grad(true);
    const auto exchange = make_comm_hook(group, {});
    // Beside each gradient one number, whether the rank has it.
    CHECK(GradientBuckets(group, *exchange, {base, a, b}, {25 << 20, 0}).bytes() == 4 * (a.numel() + b.numel() + 2));
  });
}

TEST_CASE("buckets are cut from the last parameter on", "[distributed][buckets]") {
  struct Case {
    std::int64_t bytes;
    std::size_t buckets;
  };
  // 4096, 2, 7 and 120 numbers of 4 bytes, each rounded up to 64 bytes.
  static constexpr Case cases[] = {{25 << 20, 1}, {16384, 2}, {16384 + 64, 2}, {640, 2}, {639, 3}, {1, 4}};
  tests::run_ranks({1}, [&](ProcessGroup& group) {
    const Parameters parameters;
    const auto exchange = make_comm_hook(group, {});
    for (const Case& c : cases) {
      INFO(c.bytes);
      CHECK(GradientBuckets(group, *exchange, parameters.all(), {c.bytes, 0}).buckets() == c.buckets);
    }
  });
}
