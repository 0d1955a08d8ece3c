#include "runner/train/rank_consistency.h"

#include <catch2/catch.hpp>
#include <mutex>

#include "runner/store/run_writer.h"
#include "tests/support/torch/built_experiment_torch.h"
#include "tests/support/torch/ranks_torch.h"

namespace runner::train {
namespace {

constexpr const char* kRecipe = R"(
model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic, task: regression, num_samples: 40}}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 2, micro_batch_size: 8}
)";

}  // namespace

TEST_CASE("ranks with other weights are refused by name", "[train][agreement]") {
  const auto one = tests::experiment_of(kRecipe), same = tests::experiment_of(kRecipe),
             other = tests::experiment_of(kRecipe, {"seed=2"});
  const auto errors = tests::errors_of_ranks({3}, [&](distributed::ProcessGroup& ranks) {
    const Experiment* mine[] = {one.get(), same.get(), other.get()};
    check_equal_weights(ranks, *mine[ranks.rank()]->model);
  });
  for (const std::string& error : errors) {
    INFO(error);
    CHECK(error.starts_with("ranks 0 and 2 differ in the initial weights: xxh128:"));
  }
}

TEST_CASE("the first rank chooses, and the others do as it does", "[train][agreement]") {
  std::mutex mutex;
  int told = 0, refused = 0;
  tests::run_ranks({3}, [&](distributed::ProcessGroup& ranks) {
    core::Diagnostics diagnostics;
    const auto start = choose_start_on_rank_0(&ranks, diagnostics, [&]() -> Start {
      if (ranks.rank() != 0) throw core::RunError("only the first rank looks");
      return {.resume = store::ResumePoint{"runs/a-1", 12, 3},
              .checkpoint = "runs/a-1/checkpoints/step-000012",
              .device = "cpu",
              .backend = "gloo",
              .notes = {},
              .differences = {}};
    });
    const auto none = choose_start_on_rank_0(&ranks, diagnostics, [&]() -> Start {
      diagnostics.error({}, "no such run");
      return {};
    });
    const std::lock_guard lock(mutex);
    told += start && start->resume && start->resume->run_dir == "runs/a-1" && start->resume->step == 12 &&
            start->resume->branch == 3 && start->checkpoint == "runs/a-1/checkpoints/step-000012" &&
            start->backend == "gloo";
    refused += !none;
  });
  CHECK(told == 3);
  CHECK(refused == 3);
}

TEST_CASE("NCCL needs a GPU of its own for each rank", "[train][agreement]") {
  const RankGpu first{"GPU 0000:01:00.0 of a", "boot 1"}, second{"GPU 0000:02:00.0 of a", "boot 1"};
  const RankGpu elsewhere{"GPU 0000:01:00.0 of a", "boot 2"};  // two containers may have one name
  const RankGpu none{"", "boot 1"};
  for (const char* wanted : {"auto", "nccl"}) {
    CHECK(backend_for(wanted, {first, second}).value() == "nccl");
    CHECK(backend_for(wanted, {first, elsewhere}).value() == "nccl");
  }
  CHECK(backend_for("auto", {first, second, first}).value() == "gloo");
  CHECK(backend_for("auto", {first, none}).value() == "gloo");
  CHECK(backend_for("nccl", {first, second, first}).failure().message == "ranks 0 and 2 share GPU 0000:01:00.0 of a");
  CHECK(backend_for("nccl", {first, none}).failure().message == "rank 1 has a roux without NCCL");
}

}  // namespace runner::train
