// Masks of dropout: how much they leave out, that what stays says nothing about what else stays, and that they come
// from LibTorch's generator and nothing else. The seeds are fixed, so these counts are the same each time.

#include "components/ops/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/stack.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::Dropout;

constexpr double kDeviations = 5;

Dropout drop_on_cpu(double p) { return {p, at::empty({0})}; }

at::Tensor factors(const Dropout& dropout, std::int64_t rows, std::int64_t columns, std::uint32_t number = 0) {
  return dropout.factors_like(at::empty({rows, columns}), number);
}

/// 1 where something stays, less the share that does: of mean 0 and variance p (1 - p).
at::Tensor centred(const at::Tensor& factors, double p) { return factors.ne(0).to(at::kDouble).sub(1 - p); }

/// Two masks that have nothing to do with each other: their product's mean is 0 within what chance does.
void check_independent(const at::Tensor& a, const at::Tensor& b, double p) {
  const double chance = p * (1 - p) / std::sqrt(static_cast<double>(a.numel()));
  CHECK(std::abs((a * b).mean().item<double>()) < kDeviations * chance);
}

}  // namespace

TEST_CASE("dropout leaves out the share that was asked for and scales the rest", "[dropout]") {
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    INFO(p);
    at::manual_seed(11);
    const at::Tensor mask = factors(drop_on_cpu(p), 700, 300);
    const at::Tensor stays = mask.ne(0);
    CHECK(mask.masked_select(stays).eq(1 / (1 - p)).all().item<bool>());
    const double chance = std::sqrt(p * (1 - p) / static_cast<double>(mask.numel()));
    CHECK(std::abs(stays.to(at::kDouble).mean().item<double>() - (1 - p)) < kDeviations * chance);
  }
  CHECK(factors(drop_on_cpu(0), 3, 70).eq(1).all().item<bool>());
}

TEST_CASE("what dropout leaves out says nothing about anything else that it leaves out", "[dropout]") {
  const double p = 0.3;
  at::manual_seed(12);
  const Dropout one = drop_on_cpu(p), next = drop_on_cpu(p);
  const std::int64_t rows = 600, columns = 320;
  const at::Tensor mask = centred(factors(one, rows, columns), p);
  for (const std::int64_t distance : {1, 2, 3, 16, 64}) {
    INFO(distance);
    check_independent(mask.narrow(0, distance, rows - distance), mask.narrow(0, 0, rows - distance), p);
    check_independent(mask.narrow(1, distance, columns - distance), mask.narrow(1, 0, columns - distance), p);
  }
  check_independent(mask, centred(factors(one, rows, columns, 1), p), p);
  check_independent(mask, centred(factors(next, rows, columns), p), p);
  check_independent(mask.narrow(0, 0, columns), mask.narrow(0, 0, columns).t(), p);
  // No row and no column is favoured: their sums vary as chance lets them.
  for (const std::int64_t across : {0, 1}) {
    const auto terms = static_cast<double>(mask.size(across)), sums = static_cast<double>(mask.size(1 - across));
    const double variance = mask.sum(across).square().mean().item<double>() / (terms * p * (1 - p));
    CHECK(std::abs(variance - 1) < kDeviations * std::sqrt(2 / sums));
  }
}

TEST_CASE("a mask is a function of the generator's state, whatever the number of threads", "[dropout]") {
  at::manual_seed(13);
  const auto state = components::RandomState::now(c10::Device(c10::kCPU));
  const int threads = at::get_num_threads();
  std::vector<at::Tensor> masks;
  for (const int count : {1, 2, 3}) {
    state.restore();
    at::set_num_threads(count);
    masks.push_back(factors(drop_on_cpu(0.4), 37, 71, 2));
  }
  at::set_num_threads(threads);
  CHECK(masks[0].equal(masks[1]));
  CHECK(masks[0].equal(masks[2]));
  CHECK_FALSE(masks[0].equal(factors(drop_on_cpu(0.4), 37, 71, 2)));
  at::manual_seed(14);
  CHECK_FALSE(masks[0].equal(factors(drop_on_cpu(0.4), 37, 71, 2)));
}

TEST_CASE("rows and columns of a mask do not depend on how wide and how high it is", "[dropout]") {
  at::manual_seed(15);
  const Dropout dropout = drop_on_cpu(0.5);
  const at::Tensor whole = factors(dropout, 50, 130);
  CHECK(factors(dropout, 20, 67).equal(whole.narrow(0, 0, 20).narrow(1, 0, 67)));
}
