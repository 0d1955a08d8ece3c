#include "runner/train/strategy/unit_weights.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <catch2/catch.hpp>
#include <mutex>

#include "tests/support/torch/ranks_torch.h"

namespace runner::train {
namespace {

/// Numbers that bfloat16 rounds. [rows, columns]
at::Tensor numbers(std::int64_t rows, std::int64_t columns) {
  return (at::arange(rows * columns, at::kFloat) * 0.0137F + 1.003F).view({rows, columns});
}

}  // namespace

TEST_CASE("what passes compute with in bfloat16 travels so and is summed in float32", "[train][sharding]") {
  constexpr int kRanks = 3;
  std::mutex failing;
  tests::run_ranks({.size = kRanks}, [&](distributed::ProcessGroup& group) {
    // Sent from where it is, packed, and packed in its own type; rows that do not divide.
    const std::vector<at::Tensor> exact = {numbers(200, 100), numbers(7, 3), numbers(4, 1)};
    std::vector<UnitWeights::Parameter> parameters;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const at::Tensor whole = exact[i].clone().set_requires_grad(true);
      parameters.push_back({{"p" + std::to_string(i), whole}, i, {}});
      if (i < 2) parameters.back().low = at::kBFloat16;
    }
    const std::vector<UnitWeights::Parameter> given = parameters;
    WeightMemory memory;
    UnitWeights unit(std::move(parameters), {group.rank(), kRanks}, memory);
    unit.free();
    unit.begin_gather(group, UnitWeights::Form::kPass);
    unit.end_gather();
    const std::lock_guard in_pass(failing);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const at::Tensor& whole = given[i].whole.tensor;
      CHECK(whole.scalar_type() == (i < 2 ? at::kBFloat16 : at::kFloat));
      CHECK(whole.requires_grad());
      CHECK(whole.detach().equal(exact[i].to(whole.scalar_type())));
      CHECK(unit.shards()[i].scalar_type() == at::kFloat);
    }
  });
}

TEST_CASE("a gradient in bfloat16 is widened before it is added up", "[train][sharding]") {
  constexpr int kRanks = 3;
  std::mutex failing;
  tests::run_ranks({.size = kRanks}, [&](distributed::ProcessGroup& group) {
    const at::Tensor exact = numbers(200, 100), whole = exact.clone().set_requires_grad(true);
    const ShardPlace place{group.rank(), kRanks};
    WeightMemory memory;
    UnitWeights unit({{{"p", whole}, 0, at::kBFloat16}}, place, memory);
    unit.free();
    unit.begin_gather(group, UnitWeights::Form::kPass);
    unit.end_gather();
    // Only the first rank's has a sum that bfloat16 cannot hold; the last one has none.
    if (group.rank() < 2) whole.mutable_grad() = at::full({200, 100}, group.rank() == 0 ? 256.0 : 1.0, at::kBFloat16);
    unit.gradients().begin(group);
    at::Tensor sum;
    unit.gradients().end(nullptr, [&](std::size_t, const at::Tensor& rows, bool used) {
      if (used) sum = rows.clone();
    });
    unit.free();
    unit.begin_gather(group, UnitWeights::Form::kExact);
    unit.end_gather();
    const std::lock_guard lock(failing);
    CHECK(sum.equal(at::full({rows_of(200, 100, place).count, 100}, 257.0, at::kFloat)));
    CHECK_FALSE(whole.grad().defined());
    CHECK(whole.detach().equal(exact));
  });
}

TEST_CASE("a gradient in float32 that travels in bfloat16 is rounded once", "[train][sharding]") {
  constexpr int kRanks = 3;
  std::mutex failing;
  tests::run_ranks({.size = kRanks}, [&](distributed::ProcessGroup& group) {
    // More than one piece of what is rounded at a time; and one that another tensor's numbers lie behind.
    const at::Tensor exact = numbers(700, 200), both = numbers(300, 100).clone();
    const ShardPlace place{group.rank(), kRanks};
    std::vector<RowGradients::Parameter> parameters;
    for (std::size_t i = 0; i < 2; ++i) {
      const at::Tensor whole = (i == 0 ? exact : both.narrow(0, 0, 200)).clone().set_requires_grad(true);
      whole.mutable_grad() = i == 0 ? exact * (group.rank() + 1.0) : both.narrow(0, 0, 200);
      parameters.push_back({whole, i, at::kBFloat16});
    }
    RowGradients gradients(parameters, place);
    gradients.begin(group);
    std::vector<at::Tensor> sums(2);
    gradients.end(nullptr, [&](std::size_t position, const at::Tensor& rows, bool) { sums[position] = rows.clone(); });
    const auto rounded = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); };
    const std::lock_guard lock(failing);
    CHECK(sums[0].equal(shard_of(rounded(exact) + rounded(exact * 2.0) + rounded(exact * 3.0), place)));
    const at::Tensor one = rounded(numbers(300, 100).narrow(0, 0, 200));
    CHECK(sums[1].equal(shard_of(one + one + one, place)));
    CHECK(both.narrow(0, 200, 100).equal(numbers(300, 100).narrow(0, 200, 100)));
  });
}

TEST_CASE("gradients of what is replicated are added up whole on every process", "[train][sharding]") {
  constexpr int kRanks = 3;
  std::mutex failing;
  tests::run_ranks({.size = kRanks}, [&](distributed::ProcessGroup& group) {
    // Divided and sent alone, divided and packed; replicated in the same two ways, and one that only one process uses.
    const std::vector<at::Tensor> exact = {numbers(200, 100), numbers(7, 3), numbers(200, 90), numbers(5, 1),
                                           numbers(4, 2)};
    const ShardPlace place{group.rank(), kRanks};
    std::vector<RowGradients::Parameter> parameters;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const at::Tensor whole = exact[i].clone().set_requires_grad(true);
      const double factor = group.rank() + 1;
      if (i < 4 || group.rank() == 1) whole.mutable_grad() = exact[i] * factor;
      parameters.push_back({whole, i, at::kFloat, {}, i >= 2});
    }
    RowGradients gradients(parameters, place);
    gradients.begin(group);
    std::vector<at::Tensor> sums(exact.size());
    gradients.end(nullptr, [&](std::size_t position, const at::Tensor& rows, bool used) {
      if (used) sums[position] = rows.clone();
    });
    const std::lock_guard lock(failing);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const at::Tensor sum = i < 4 ? exact[i] + exact[i] * 2.0 + exact[i] * 3.0 : exact[i] * 2.0;
      REQUIRE(sums[i].defined());
      CHECK(sums[i].allclose(i < 2 ? shard_of(sum, place) : sum));
      CHECK_FALSE(parameters[i].whole.grad().defined());
    }
  });
}

}  // namespace runner::train
