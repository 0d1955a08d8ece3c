#include "runner/distributed/mesh.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/error.h"
#include "tests/support/torch/ranks_torch.h"

namespace {

using runner::distributed::Mesh;
using runner::distributed::ProcessGroup;

/// Sums the numbers of the ranks along an axis; -1 where there is no group.
double sum_along(const Mesh& mesh, const std::string& axis, int rank) {
  ProcessGroup* group = mesh.along(axis);
  if (group == nullptr) return -1;
  const at::Tensor sum = at::full({1}, rank, at::kFloat);
  group->begin_all_reduce(sum, "numbers")->wait();
  return sum.item<double>();
}

}  // namespace

TEST_CASE("the last axis of a mesh counts fastest", "[distributed][mesh]") {
  // A 2 x 2 mesh: shards {0, 1} and {2, 3}, replicas {0, 2} and {1, 3}.
  std::vector<std::vector<double>> sums(4);
  std::vector<std::string> places(4);
  tests::run_ranks({4}, [&](ProcessGroup& world) {
    const Mesh mesh(world, {{"dp_replicate", 2}, {"dp_shard", 2}, {"tp", 1}});
    const int rank = world.rank();
    const auto at = static_cast<std::size_t>(rank);
    for (const char* axis : {"dp_replicate", "dp_shard", "tp", "pp"}) sums[at].push_back(sum_along(mesh, axis, rank));
    places[at] = mesh.text_of(rank);
  });
  CHECK(sums == std::vector<std::vector<double>>{{2, 1, -1, -1}, {4, 1, -1, -1}, {2, 5, -1, -1}, {4, 5, -1, -1}});
  CHECK(places[2] == "dp_replicate 1, dp_shard 0, tp 0");
}

TEST_CASE("the groups of a mesh exchange at the same time", "[distributed][mesh]") {
  std::vector<double> sums(4);
  tests::run_ranks({4}, [&](ProcessGroup& world) {
    const Mesh mesh(world, {{"dp_replicate", 2}, {"dp_shard", 2}});
    const at::Tensor all = at::full({1000}, world.rank(), at::kFloat), shards = all.clone(), replicas = all.clone();
    // A rank waits for them in an order of its own.
    const auto a = world.begin_all_reduce(all, "all"), b = mesh.along("dp_shard")->begin_all_reduce(shards, "shards"),
               c = mesh.along("dp_replicate")->begin_all_reduce(replicas, "replicas");
    c->wait();
    b->wait();
    a->wait();
    sums[static_cast<std::size_t>(world.rank())] =
        all[999].item<double>() + 10 * shards[0].item<double>() + 1000 * replicas[500].item<double>();
  });
  CHECK(sums == std::vector<double>{2016, 4016, 2056, 4056});
}

TEST_CASE("a lost rank of a mesh is named by its place, whatever group waits for it", "[distributed][mesh]") {
  const std::vector<std::string> errors = tests::errors_of_ranks({4, 1.0}, [](ProcessGroup& world) {
    const Mesh mesh(world, {{"dp_replicate", 2}, {"dp_shard", 2}});
    if (world.rank() == 3) throw runner::core::RunError("ended early");
    const at::Tensor sum = at::full({1}, 1, at::kFloat);
    mesh.along(world.rank() == 2 ? "dp_shard" : "dp_replicate")->begin_all_reduce(sum, "gradients")->wait();
    if (world.rank() == 0) mesh.along("dp_replicate")->begin_all_reduce(sum, "more")->wait();
  });
  for (const std::size_t rank : {1U, 2U}) {
    CAPTURE(rank, errors[rank]);
    const std::string axis = rank == 2 ? "dp_shard" : "dp_replicate";
    CHECK(errors[rank].starts_with("rank " + std::to_string(rank) + ": all_reduce of gradients along " + axis));
    CHECK(errors[rank].find("rank 3 (dp_replicate 1, dp_shard 1, process ") != std::string::npos);
  }
}

TEST_CASE("with debugging a rank of a group is named by its number among all", "[distributed][mesh]") {
  const std::vector<std::string> errors = tests::errors_of_ranks({4, 60, true}, [](ProcessGroup& world) {
    const Mesh mesh(world, {{"dp_replicate", 2}, {"dp_shard", 2}});
    const at::Tensor sum = at::full({world.rank() == 3 ? 2 : 1}, 1, at::kFloat);
    mesh.along("dp_shard")->begin_all_reduce(sum, "gradients")->wait();
  });
  CHECK(errors[0].empty());
  CHECK(errors[2] ==
        "the ranks call different collectives: rank 2: all_reduce of gradients, float [1]; rank 3: all_reduce of "
        "gradients, float [2]");
  CHECK(errors[3] == errors[2]);
}
