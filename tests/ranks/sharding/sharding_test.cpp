// Sharded trainings of real processes beside one process. tests/runner/train/strategy/sharding_product_test.cpp has
// each pair of what a recipe combines, on threads.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/artifact/tensor_set.h"
#include "tests/support/process/ranks_test_run.h"
#include "tests/support/sharded_recipes.h"

namespace {

namespace artifact = runner::artifact;
namespace recipes = tests::sharded_recipes;

using Sets = std::vector<std::string>;
using tests::distance;

constexpr tests::ShardedSizes kSizes = {.layers = 2, .length = 4, .side = 4, .steps = 20, .batch = 48};

struct Row {
  const char* shard;
  int shards, copies;
  const char* precision;
  int accumulation;
  const char *recomputed, *model;
  bool twice = false;  ///< and to the same bits
};

/// Each value of each column of the product.
constexpr Row kRows[] = {
    {"optimizer", 2, 1, "32-true", 1, "none", "gpt"},
    {"optimizer", 2, 2, "32-true", 4, "full", "llama", true},
    {"optimizer", 3, 1, "bf16-mixed", 1, "none", "pictures"},
    {"gradients", 3, 1, "32-true", 4, "none", "pictures"},
    {"gradients", 2, 2, "32-true", 1, "full", "gpt"},
    {"parameters", 4, 1, "32-true", 1, "full", "llama"},
    {"parameters", 2, 2, "bf16-mixed", 4, "none", "llama", true},
    {"parameters", 2, 1, "32-true", 4, "full", "pictures"},
};

/// A run of a recipe with these settings, which has ended and saved its last step.
class Run {
 public:
  Run(const Row& row, Sets sets, int steps = kSizes.steps) : run_(recipe_of(row)) {
    sets.insert(sets.end(),
                {"training.max_steps=" + std::to_string(steps), "checkpoint.save_steps=" + std::to_string(steps)});
    const auto ended = run_.run(sets);
    INFO(ended.output);
    REQUIRE(ended.status == 0);
    const auto saved = artifact::list_checkpoints(run_.run_dir() / "checkpoints");
    REQUIRE(saved.size() == 1);
    REQUIRE(saved.back().step == steps);
    checkpoint_ = saved.back().path;
  }

  const std::string& checkpoint() const { return checkpoint_; }

  std::vector<double> losses() const {
    std::vector<double> losses;
    for (const auto& point : run_.series("loss")) losses.push_back(point.value);
    REQUIRE(losses.size() == static_cast<std::size_t>(kSizes.steps));
    return losses;
  }

  /// What was saved of a set in tensors whose names begin so, in the order of these names.
  std::vector<double> saved(const std::string& set, const std::string& begin = "") const {
    const auto file = artifact::open_tensors(artifact::tensor_set_path(checkpoint_, set)).value();
    std::map<std::string, const artifact::TensorBytes*> by_name;
    for (const auto& tensor : file->tensors()) {
      if (tensor.name.starts_with(begin)) by_name[tensor.name] = &tensor;
    }
    std::vector<double> all;
    std::vector<char> scratch;
    for (const auto& [name, tensor] : by_name) {
      REQUIRE(tensor->dtype == "F32");
      std::vector<float> numbers(static_cast<std::size_t>(tensor->bytes) / sizeof(float));
      std::memcpy(numbers.data(), artifact::bytes_at(*tensor, 0, tensor->bytes, scratch),
                  static_cast<std::size_t>(tensor->bytes));
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    return all;
  }

 private:
  static std::string recipe_of(const Row& row) {
    const bool is_pictures = std::string(row.model) == "pictures";
    return (is_pictures ? recipes::pictures(kSizes) : recipes::text(kSizes)) + "run_name: ranks\nlogging_steps: 1\n";
  }

  tests::RanksTestRun run_;
  std::string checkpoint_;
};

Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// Of all processes: where bfloat16 takes longer than float32, one process would compute in float32, and be no measure.
struct RoundedProducts {
  RoundedProducts() { setenv("ROUX_CPU_BF16", "1", 1); }
  ~RoundedProducts() { unsetenv("ROUX_CPU_BF16"); }
  RoundedProducts(const RoundedProducts&) = delete;
  RoundedProducts& operator=(const RoundedProducts&) = delete;
};

}  // namespace

TEST_CASE("sharded trainings of several processes are those of one", "[ranks][processes][sharding]") {
  const RoundedProducts rounded;
  for (const Row& row : kRows) {
    CAPTURE(row.shard, row.shards, row.copies, row.precision, row.accumulation, row.recomputed, row.model);
    const int ranks = row.shards * row.copies;
    Sets sets = {"training.micro_batch_size=" + std::to_string(kSizes.batch / (ranks * row.accumulation)),
                 std::string("activation_checkpointing.mode=") + row.recomputed};
    if (std::string(row.model) == "llama") sets.push_back(recipes::llama(kSizes));
    const Sets mode = {std::string("precision.mode=") + row.precision};
    const Sets sharding = {tests::processes(ranks), std::string("parallelism={shard: ") + row.shard +
                                                        ", dp_replicate_size: " + std::to_string(row.copies) + "}"};
    const Run whole(row, sets), several(row, with(with(sets, mode), sharding));
    if (std::string(row.precision) == "32-true") {
      CHECK(distance(several.losses(), whole.losses()) <= 1e-5);
      CHECK(distance(several.saved("model.safetensors"), whole.saved("model.safetensors")) <= 1e-5);
      const Sets adamw = with(sets, {"optimizer={type: adamw, lr: 0.001}"});
      const Run of_one(row, adamw, 1), of_all(row, with(adamw, sharding), 1);
      // A tenth of the first step's gradients.
      CHECK(distance(of_all.saved("optimizer.safetensors", "exp_avg."),
                     of_one.saved("optimizer.safetensors", "exp_avg.")) <= 1e-5);
    } else {
      tests::Bf16Curves curves;
      curves.add(several.losses(), Run(row, with(sets, mode)).losses(), whole.losses());
      for (int i = 1; i < tests::Bf16Curves::kSeeds; ++i) {
        const Sets other = with(sets, {"seed=" + std::to_string(tests::Bf16Curves::kFirstSeed + i)});
        curves.add(Run(row, with(with(other, mode), sharding)).losses(), Run(row, with(other, mode)).losses(),
                   Run(row, other).losses());
      }
      CHECK(curves.ratio() <= 1.5);
    }
    if (!row.twice) continue;
    const Run again(row, with(with(sets, mode), sharding));
    CHECK(again.losses() == several.losses());
    CHECK(artifact::compare_checkpoints(again.checkpoint(), several.checkpoint()).value().same());
  }
}
