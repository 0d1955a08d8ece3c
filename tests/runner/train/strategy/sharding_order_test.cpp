// The order of the exchanges of sharded parameters, with many ranks that arrive in any order.

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/block/block.h"
#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/precision.h"
#include "runner/train/strategy/block_units.h"
#include "tests/support/folder.h"
#include "tests/support/sharded_recipes.h"
#include "tests/support/torch/pretended_ranks.h"
#include "tests/support/torch/sharded_training_torch.h"

namespace runner::train {
namespace {

using tests::PretendedRanks;
using tests::RanksEnd;
using tests::train_on_ranks;
using tests::Trained;

constexpr int kRanks = 64, kSteps = 2;

/// Layers of 128 rows, two for each rank: the weights of most travel alone, the rest packed.
constexpr const char* kRecipe = R"(
seed: 5
model:
  type: sequential
  layers:
    - flatten
    - {type: linear, out_features: 128, bias: false}
    - {type: linear, out_features: 128, bias: false}
    - relu
    - {type: linear, out_features: 128}
    - relu
    - {type: linear, out_features: 128, bias: false}
    - {type: linear, out_features: 128, bias: false}
    - {type: linear, out_features: 4}
data: {train: {type: synthetic_images, num_samples: 256, num_classes: 4, height: 4, width: 4}}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 2, micro_batch_size: 2, global_batch_size: 128, clip_grad_norm: 0.5}
)";

/// What the ranks hold at most while they train, in bytes.
class Watch {
 public:
  explicit Watch(const UnitSizes& sizes = {}) : sizes_(sizes) {}

  /// Of each rank's experiment, before it trains.
  void begin(const Experiment& experiment) {
    ranks_[experiment.rank()].experiment = &experiment;
    if (!experiment.is_first()) return;
    bounds_ = *experiment.strategy->held_bytes();
    std::vector<std::int64_t> blocks;
    for (const auto& block : experiment.model->blocks()) {
      blocks.push_back(0);
      for (const auto& parameter : block->parameters()) blocks.back() += bytes(parameter.tensor);
    }
    const BlockUnits units = units_of(*experiment.model, sizes_);
    std::vector<std::int64_t> of_unit(units.first_block.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) of_unit[units.of_block[i].value_or(0)] += blocks[i];
    gradients_bound_ = of_unit.front() + *std::max_element(of_unit.begin(), of_unit.end());
  }

  /// At each exchange.
  void look(int number, const std::string& what, const std::vector<at::Tensor>& on_their_way) {
    Rank& rank = ranks_[number];
    rank.began = rank.began || what == "all_gather of the weights";  // until then the weights are those that were drawn
    if (what == "all_reduce of the norm") ++rank.steps;
    if (!rank.began || rank.steps == kSteps) return;
    std::int64_t weights = 0, gradients = 0, exchange = 0;
    std::set<const void*> held;  // large weights arrive where they are held
    for (const components::NamedTensor& parameter : rank.experiment->model->parameters()) {
      weights += static_cast<std::int64_t>(parameter.tensor.storage().nbytes());
      held.insert(parameter.tensor.storage().data());
      gradients += parameter.tensor.grad().defined() ? bytes(parameter.tensor.grad()) : 0;
    }
    for (const at::Tensor& one : on_their_way) exchange += held.contains(one.storage().data()) ? 0 : bytes(one);
    weights_ = std::max(weights_, weights);
    gradients_ = std::max(gradients_, gradients);
    exchange_ = std::max(exchange_, exchange);
    all_ = std::max(all_, weights + exchange);
  }

  std::int64_t most_weights() const { return weights_; }

  void check() const {
    CHECK(weights_ > 0);
    CHECK(weights_ <= bounds_.weights);
    CHECK(gradients_ > 0);
    CHECK(gradients_ <= gradients_bound_);
    CHECK(exchange_ > 0);
    // What the others send of gradients is where the weights were.
    CHECK(all_ <= bounds_.weights + std::max(bounds_.exchange, bounds_.last));
  }

 private:
  struct Rank {
    const Experiment* experiment = nullptr;
    bool began = false;
    int steps = 0;
  };
  static std::int64_t bytes(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

  std::map<int, Rank> ranks_;
  UnitSizes sizes_;
  HeldBytes bounds_;
  std::int64_t gradients_bound_ = 0, weights_ = 0, gradients_ = 0, exchange_ = 0, all_ = 0;
};

struct Outcome {
  Trained trained;
  RanksEnd end;
  Watch watch;
};

Outcome train_pretended(PretendedRanks how, std::vector<std::string> sets, const UnitSizes& sizes = {}) {
  Outcome outcome;
  outcome.watch = Watch(sizes);
  if (sizes.whole_model) sets.push_back("parallelism.unit=model");
  if (sizes.min_elements > 0) sets.push_back("parallelism.min_num_params=" + std::to_string(sizes.min_elements));
  how.size = kRanks;
  how.on_exchange = [&](int rank, const std::string& what, const std::vector<at::Tensor>& on_their_way) {
    outcome.watch.look(rank, what, on_their_way);
  };
  sets.push_back("parallelism.shard=parameters");
  outcome.trained = train_on_ranks(
      sets, kRanks, [&](Experiment& experiment) { outcome.watch.begin(experiment); },
      [&](const auto& body) { outcome.end = tests::run_pretended_ranks(how, body); });
  return outcome;
}

}  // namespace

TEST_CASE("64 ranks make their exchanges in one order, whoever arrives first", "[train][sharding]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  struct Row {
    std::vector<std::string> sets;
    PretendedRanks first, second;
    UnitSizes sizes = {};
    std::vector<std::string> more = {};  // of the sharding
  };
  const Row rows[] = {
      {{}, {.seed = 1}, {.seed = 2}},
      // A pass for each rank, and a second one for half of them.
      {{"training.micro_batch_size=1", "training.global_batch_size=96"}, {.seed = 3}, {.seed = 4, .slow = 17}},
      {{}, {.seed = 5}, {.seed = 6}, {.min_elements = 20000}},
      {{}, {.seed = 7}, {.seed = 8}, {.whole_model = true}},
      {{}, {.seed = 9}, {.seed = 10}, {.named = {"layers.2"}}, {"parallelism.unit_blocks=layers.2"}},
      {{},
       {.seed = 11},
       {.seed = 12, .slow = 5},
       {},
       {"parallelism.prefetch_units=9", "parallelism.backward_prefetch=after"}},
      {{},
       {.seed = 13},
       {.seed = 14},
       {},
       {"parallelism.forward_prefetch=false", "parallelism.backward_prefetch=after"}},
      {{},
       {.seed = 15},
       {.seed = 16},
       {},
       {"parallelism.forward_prefetch=false", "parallelism.backward_prefetch=none"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.sets, row.more, row.sizes.min_elements, row.sizes.whole_model);
    std::vector<std::string> sets = row.sets;
    sets.push_back("training.micro_batch_size=32");
    const Trained one = train_on_ranks(sets, 1);
    std::vector<std::string> sharded = row.sets;
    sharded.insert(sharded.end(), row.more.begin(), row.more.end());
    const Outcome first = train_pretended(row.first, sharded, row.sizes),
                  second = train_pretended(row.second, sharded, row.sizes);
    for (const Outcome* outcome : {&first, &second}) {
      const Outcome& several = *outcome;
      CHECK(several.end.errors == std::vector<std::string>(kRanks));
      CHECK(several.end.violations == std::vector<std::string>());
      CHECK(several.end.switches > several.end.exchanges.size() * kRanks / 2);
      several.watch.check();
      REQUIRE(several.trained.losses.size() == kSteps);
      for (std::size_t i = 0; i < kSteps; ++i) CHECK(several.trained.losses[i] == Approx(one.losses[i]).epsilon(1e-5));
    }
    CHECK(first.end.exchanges == second.end.exchanges);
    CHECK(first.trained.losses == second.trained.losses);
    CHECK(first.trained.weights == second.trained.weights);
  }
}

TEST_CASE("each unit that is gathered ahead is more memory, and none is the least", "[train][sharding]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto most = [](const std::vector<std::string>& sets) {
    const Outcome outcome = train_pretended({.seed = 1}, sets);
    CHECK(outcome.end.errors == std::vector<std::string>(kRanks));
    outcome.watch.check();
    return outcome.watch.most_weights();
  };
  const std::string none = "parallelism.backward_prefetch=none", off = "parallelism.forward_prefetch=false";
  const std::int64_t least = most({off, none}), behind = most({off, "parallelism.backward_prefetch=after"}),
                     one = most({off}), two = most({none, "parallelism.prefetch_units=2"});
  CHECK(least == behind);
  CHECK(behind < one);
  CHECK(one < two);
}

TEST_CASE("gradients of one pass travel in the type of its products, sums of passes in float32", "[train][sharding]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", tests::sharded_recipes::text({.steps = 1}));
  const c10::ScalarType low = multiplies_bf16(at::kCPU) ? at::kBFloat16 : at::kFloat;
  struct Row {
    const char* mode;
    int passes;
    bool syncs;
    c10::ScalarType large;
  };
  const Row rows[] = {{"bf16-mixed", 1, false, low},
                      {"bf16-mixed", 2, true, low},
                      {"bf16-mixed", 2, false, at::kFloat},
                      {"32-true", 1, false, at::kFloat}};
  for (const Row& row : rows) {
    CAPTURE(row.mode, row.passes, row.syncs);
    std::set<std::pair<bool, c10::ScalarType>> types;  // of large gradients, and of what is packed
    PretendedRanks how;
    how.on_exchange = [&](int, const std::string& what, const std::vector<at::Tensor>& on_their_way) {
      if (what != "all_to_all of the gradients") return;
      for (const at::Tensor& one : on_their_way) types.emplace(one.numel() >= 1 << 14, one.scalar_type());
    };
    RanksEnd end;
    train_on_ranks(
        {"model={type: gpt, n_layer: 1, n_head: 2, n_embd: 128, vocab_size: 256}", "parallelism.shard=gradients",
         "training.global_batch_size=null", "training.micro_batch_size=8", std::string("precision.mode=") + row.mode,
         "training.gradient_accumulation_steps=" + std::to_string(row.passes),
         std::string("accumulation.sync_each_batch=") + (row.syncs ? "true" : "false")},
        how.size, {}, [&](const auto& body) { end = tests::run_pretended_ranks(how, body); });
    CHECK(end.errors == std::vector<std::string>(2));
    CHECK(types == std::set<std::pair<bool, c10::ScalarType>>{{true, row.large}, {false, at::kFloat}});
  }
}

TEST_CASE("63 ranks name the one that is lost, wherever in a pass", "[train][sharding]") {
  constexpr int kLost = 37;
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const std::vector<std::string> sets = {"training.max_steps=1"};
  const RanksEnd whole = train_pretended({.seed = 5}, sets).end;
  const auto exchanges = static_cast<std::int64_t>(whole.exchanges.size());
  for (std::int64_t at = 2; at < exchanges; at += 7) {
    CAPTURE(at, whole.exchanges[static_cast<std::size_t>(at)]);
    const RanksEnd end = train_pretended({.seed = 5, .lost = kLost, .lost_at = at}, sets).end;
    CHECK(end.violations == std::vector<std::string>());
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string& error = end.errors[static_cast<std::size_t>(rank)];
      CAPTURE(rank, error);
      CHECK(error.find(rank == kLost ? "rank 37 ends here" : "rank 37 does not respond") != std::string::npos);
    }
  }
}

}  // namespace runner::train
