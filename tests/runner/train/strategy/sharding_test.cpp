// Sharded trainings are those of one process, on ranks that are threads.

#include <ATen/ops/empty.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "runner/train/strategy/row_shards.h"
#include "tests/support/folder.h"
#include "tests/support/sharded_recipes.h"
#include "tests/support/torch/sharded_training_torch.h"

namespace runner::train {
namespace {

using Sets = std::vector<std::string>;
using tests::distance;
using tests::train_on_ranks;
using tests::Trained;

constexpr tests::ShardedSizes kSizes = {.layers = 3, .length = 8, .side = 6, .steps = 5, .batch = 24};
const std::string kText = tests::sharded_recipes::text(kSizes), kPictures = tests::sharded_recipes::pictures(kSizes);

constexpr const char* kWide = R"(
seed: 5
model: {type: mlp, hidden: [1460, 1460]}
data: {train: {type: synthetic, task: regression, num_samples: 24}}
loss: mse
optimizer: {type: lamb, lr: 0.01}
training: {max_steps: 2, micro_batch_size: 4, global_batch_size: 24}
)";

struct Row {
  const char *shard, *model, *precision, *accumulation, *recomputed;
  int ranks;
  const char* more = "";
};

constexpr const char* kBuckets = "ddp.bucket_cap_mb=0.002";  // a dozen, and no full one
constexpr const char *kModel = "parallelism.unit=model",
                     *kJoined = "parallelism.min_num_params=2000";  // two of three blocks, and what is left joins them

constexpr const char *kOnce = "accumulation.sync_each_batch=false", *kEach = "accumulation.sync_each_batch=true";

/// What the pairs of sharding_product_test.cpp do not have: uneven shares of a step, and other ways to exchange.
constexpr Row kRows[] = {
    {"parameters", "llama", "bf16-mixed", "6", "full", 3},
    {"parameters", "llama", "32-true", "3", "full", 2},
    {"parameters", "pictures", "bf16-mixed", "6", "none", 2},
    {"parameters", "llama", "16-mixed", "2", "none", 3},
    {"gradients", "gpt", "bf16-mixed", "6", "full", 4},
    {"gradients", "pictures", "32-true", "6", "none", 2},
    {"optimizer", "gpt", "32-true", "6", "full", 2},
    {"gradients", "gpt", "32-true", "4", "none", 3, kBuckets},
    {"parameters", "gpt", "32-true", "2", "full", 3, kModel},
    {"parameters", "llama", "32-true", "4", "none", 2, kJoined},
    {"parameters", "gpt", "32-true", "2", "full", 3, "parallelism.unit_blocks=h.1"},
    {"parameters", "llama", "bf16-mixed", "4", "full", 2, kOnce},
    {"gradients", "pictures", "32-true", "3", "none", 4, kOnce},
    {"parameters", "pictures", "32-true", "6", "none", 2, kOnce},
    {"optimizer", "gpt", "32-true", "4", "none", 2, kEach},
    {"parameters", "mixture", "32-true", "4", "full", 2},
    {"gradients", "mixture", "32-true", "2", "none", 3},
    {"parameters", "mixture", "bf16-mixed", "4", "none", 4},
};

Sets sets_of(const Row& row) {
  Sets sets = {std::string("precision.mode=") + row.precision};
  if (std::string(row.recomputed) != "none")
    sets.push_back(std::string("activation_checkpointing.mode=") + row.recomputed);
  if (std::string(row.model) == "llama") sets.push_back(tests::sharded_recipes::llama(kSizes));
  if (std::string(row.model) == "mixture") sets.push_back(tests::sharded_recipes::mixture(kSizes));
  const int micro = 24 / (row.ranks * std::stoi(row.accumulation));
  sets.push_back("training.micro_batch_size=" + std::to_string(std::max(1, micro)));
  return sets;
}

/// `more`: what is said of the sharding alone.
void check_sharded(const Sets& sets, const std::string& shard, int ranks, double tolerance, const Sets& more = {}) {
  const Trained one = train_on_ranks(sets, 1);
  Sets sharded = sets;
  sharded.push_back("parallelism.shard=" + shard);
  sharded.insert(sharded.end(), more.begin(), more.end());
  const Trained several = train_on_ranks(sharded, ranks), again = train_on_ranks(sharded, ranks);
  CHECK(distance(several.losses, one.losses) < tolerance);
  CHECK(distance(several.norms, one.norms) < 10 * tolerance);
  CHECK(distance(several.weights, one.weights) < tolerance);
  CHECK(distance(several.eval_weights, one.eval_weights) < tolerance);
  for (const std::vector<double>& weights : several.rank_weights) CHECK(weights == several.weights);
  CHECK(several.losses == again.losses);
  CHECK(several.weights == again.weights);
  CHECK(several.eval_weights == again.eval_weights);
}

}  // namespace

TEST_CASE("what is sharded is trained as by one process, and with the same bits each time", "[train][sharding]") {
  const tests::Folder folder;
  for (const Row& row : kRows) {
    CAPTURE(row.shard, row.model, row.precision, row.accumulation, row.recomputed, row.ranks);
    folder.write("recipe.yaml", std::string(row.model) == "pictures" ? kPictures : kText);
    const Sets sets = sets_of(row);
    // The rows of a product differ with the size of a micro-batch, and rounding to bfloat16 shows it.
    const double tolerance = std::string(row.precision) == "32-true" ? 1e-5 : 3e-3;
    check_sharded(sets, row.shard, row.ranks, tolerance, *row.more == '\0' ? Sets() : Sets{row.more});
  }
}

TEST_CASE("what is gathered ahead changes no bit", "[train][sharding]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kText);
  for (const char* recomputed : {"none", "full"}) {
    const Sets sets = {"parallelism.shard=parameters", "training.micro_batch_size=4",
                       std::string("activation_checkpointing.mode=") + recomputed};
    const Trained usual = train_on_ranks(sets, 2);
    for (const Sets& more : {Sets{"parallelism.prefetch_units=2"},
                             {"parallelism.prefetch_units=7", "parallelism.backward_prefetch=after"},
                             {"parallelism.forward_prefetch=false", "parallelism.backward_prefetch=after"},
                             {"parallelism.forward_prefetch=false", "parallelism.backward_prefetch=none"},
                             {"parallelism.forward_prefetch=false", "parallelism.reshard_after_forward=false"},
                             {"parallelism.backward_prefetch=none"}}) {
      CAPTURE(recomputed, more);
      Sets all = sets;
      all.insert(all.end(), more.begin(), more.end());
      const Trained other = train_on_ranks(all, 2);
      CHECK(other.losses == usual.losses);
      CHECK(other.weights == usual.weights);
    }
  }
}

TEST_CASE("what is sharded goes on when a pass of one process runs out of memory", "[train][sharding]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kText);
  const Sets sets = {"training.micro_batch_size=2", "training.auto_micro_batch=halve", "training.max_steps=2"};
  const Trained one = train_on_ranks(sets, 1);
  for (const auto& [shard, each] : {std::pair<std::string, std::string>{"parameters", "true"},
                                    {"parameters", "false"},
                                    {"gradients", "true"},
                                    {"gradients", "false"},
                                    {"optimizer", "false"}}) {
    // The gradient of an early block: those of later ones have been sent, or are on their way.
    for (const std::string parameter : {"h.0.mlp_fc.weight", "h.1.attn_qkv.weight"}) {
      CAPTURE(shard, each, parameter);
      Sets sharded = sets;
      sharded.insert(sharded.end(), {"parallelism.shard=" + shard, "accumulation.sync_each_batch=" + each, kBuckets});
      int passes = 0;
      const Trained several = train_on_ranks(sharded, 2, [&](Experiment& experiment) {
        if (experiment.rank() != 1) return;
        for (const components::NamedTensor& named : experiment.model->parameters()) {
          if (named.name != parameter) continue;
          named.tensor.register_hook([&passes](const at::Tensor& gradient) {
            if (++passes == 4) throw std::bad_alloc();
            return gradient;
          });
        }
      });
      CHECK(passes > 4);
      CHECK(several.shrunk == 1);
      CHECK(distance(several.losses, one.losses) < 1e-5);
      CHECK(distance(several.norms, one.norms) < 1e-4);
      CHECK(distance(several.weights, one.weights) < 1e-5);
    }
  }
}

TEST_CASE("optimizers that need whole tensors get them, and train as with one process", "[train][sharding]") {
  struct Dealt {
    const char *shard, *model, *optimizer, *micro_batch;
    int ranks;
  };
  constexpr Dealt kDealt[] = {
      {"optimizer", "gpt", "adafactor", "4", 3}, {"optimizer", "pictures", "lamb", "2", 2},
      {"optimizer", "gpt", "muon", "6", 2},      {"gradients", "pictures", "adafactor", "4", 2},
      {"gradients", "gpt", "lamb", "2", 3},      {"gradients", "gpt", "muon", "4", 3},
      {"gradients", "pictures", "muon", "2", 4},
  };
  const tests::Folder folder;
  for (const Dealt& row : kDealt) {
    CAPTURE(row.shard, row.model, row.optimizer, row.micro_batch, row.ranks);
    folder.write("recipe.yaml", std::string(row.model) == "pictures" ? kPictures : kText);
    const Sets sets = {std::string("optimizer={type: ") + row.optimizer + ", lr: 0.01, weight_decay: 0.1}",
                       std::string("training.micro_batch_size=") + row.micro_batch};
    // Muon rounds to bfloat16.
    check_sharded(sets, row.shard, row.ranks, std::string(row.optimizer) == "muon" ? 3e-3 : 1e-5);
  }
  // Its second layer is large enough for its owner to send it from where it is.
  folder.write("recipe.yaml", kWide);
  check_sharded({"training.micro_batch_size=6"}, "gradients", 4, 1e-5);
}

TEST_CASE("rows of a large parameter reach the others in parts", "[train][sharding]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kWide);
  // 9 million weights, of which 32 MB at a time travel; the rows of three processes differ.
  const Sets sets = {"model.hidden=[3001, 3001]", "optimizer={type: sgd, lr: 0.01}", "training.micro_batch_size=8"};
  check_sharded(sets, "optimizer", 3, 1e-5);
}

TEST_CASE("a state in blocks is that of one process, whatever rows the processes have", "[train][sharding]") {
  struct Blocks {
    const char *shard, *model, *optimizer;
    int ranks;
    Sets more = {};
  };
  const Sets none = {}, copies = {"parallelism.dp_replicate_size=2"};
  const Blocks rows[] = {
      {"optimizer", "wide", "adamw_8bit", 3, none},    {"gradients", "wide", "adamw_8bit", 2, none},
      {"parameters", "wide", "adamw_8bit", 3, none},   {"parameters", "wide", "lion_8bit", 4, copies},
      {"optimizer", "pictures", "lion_8bit", 2, none}, {"gradients", "gpt", "adamw_8bit", 3, none},
  };
  const tests::Folder folder;
  for (const Blocks& row : rows) {
    CAPTURE(row.shard, row.model, row.optimizer, row.ranks);
    const std::string model = row.model;
    folder.write("recipe.yaml", model == "wide" ? kWide : model == "pictures" ? kPictures : kText);
    // A row of 77 elements is no whole number of blocks.
    Sets sets = {std::string("optimizer={type: ") + row.optimizer + ", lr: 0.001, weight_decay: 0.1}",
                 "training.max_steps=3"};
    if (model == "wide") sets.insert(sets.end(), {"model.hidden=[77, 77]", "training.micro_batch_size=8"});
    check_sharded(sets, row.shard, row.ranks, 1e-4, row.more);
  }
}

TEST_CASE("no process has a part of a block, but of the last", "[train][sharding]") {
  // Rows of 77 elements: 256 of them are 77 blocks, the fewest whole ones.
  const at::Tensor whole = at::empty({600, 77});
  const auto rows = [&whole](int index) { return shard_sizes(whole, {index, 3, {}, false, 256}).front(); };
  CHECK(rows(0) == 256);
  CHECK(rows(1) == 256);
  CHECK(rows(2) == 88);
  const auto blocks = [&whole](int index) { return blocks_of(whole, {index, 3, {}, false, 256}); };
  CHECK(block_count(whole, {0, 3, {}, false, 256}) == 181);  // 46,200 / 256 rounded up
  CHECK(blocks(1).first == 77);
  CHECK(blocks(1).count == 77);
  CHECK(blocks(2).first == 154);
  CHECK(blocks(2).count == 27);
  // Rows that are whole blocks are divided as ever, and few small ones may be one process's.
  CHECK(shard_sizes(at::empty({5, 512}), {0, 3, {}, false, 256}).front() == 2);
  CHECK(shard_sizes(at::empty({100}), {0, 3, {}, false, 256}).front() == 100);
  CHECK(shard_sizes(at::empty({100}), {1, 3, {}, false, 256}).front() == 0);
  CHECK(block_count(whole, {0, 3}) == 0);
}

TEST_CASE("averages are kept of a process's rows, and are those of one process", "[train][sharding]") {
  struct Averaged {
    const char *shard, *model, *how;
    int ranks;
  };
  constexpr const char *kFree = "optimizer={type: adamw_schedule_free, lr: 0.01, weight_decay: 0.1}",
                       *kPlainFree = "optimizer={type: sgd_schedule_free, lr: 0.1}",
                       *kEma = "weight_averaging={type: ema, decay: 0.5, start_step: 1}",
                       *kSwa = "weight_averaging={type: swa, start_step: 2, update_bn: false}";
  constexpr Averaged kAveraged[] = {
      {"optimizer", "pictures", kFree, 2},  {"gradients", "gpt", kFree, 3}, {"parameters", "gpt", kFree, 2},
      {"parameters", "pictures", kFree, 3}, {"optimizer", "gpt", kEma, 3},  {"gradients", "pictures", kEma, 2},
      {"parameters", "gpt", kSwa, 3},       {"gradients", "gpt", kSwa, 2},  {"parameters", "pictures", kEma, 2},
      {"optimizer", "gpt", kPlainFree, 2},
  };
  const tests::Folder folder;
  for (const Averaged& row : kAveraged) {
    CAPTURE(row.shard, row.model, row.how, row.ranks);
    folder.write("recipe.yaml", std::string(row.model) == "pictures" ? kPictures : kText);
    check_sharded({row.how}, row.shard, row.ranks, 1e-5);
  }
  // Of tensors that have an owner.
  check_sharded({"optimizer={type: adafactor, lr: 0.01}", kEma}, "gradients", 3, 1e-5);
}

TEST_CASE("what is replicated beside what is sharded is trained as by one process", "[train][sharding]") {
  struct Replicated {
    const char *shard, *model, *which;
    int ranks;
    Sets more = {};
  };
  const std::string first = R"(["wte.*", "h.1.*"])", biases = R"(["*.bias"])", all = R"(["*"])";
  const Sets mixed = {"precision.mode=bf16-mixed", kOnce}, copies = {"parallelism.dp_replicate_size=2"},
             ema = {"weight_averaging={type: ema, decay: 0.5, start_step: 1}"},
             dealt = {"optimizer={type: adafactor, lr: 0.01}"}, largest = {"training.norm_type=.inf"},
             frozen = {R"(training.freeze=["h.0.*", "wpe.*"])", "activation_checkpointing.mode=full"},
             joined = {kJoined, ema.front()};
  const Replicated rows[] = {
      {"optimizer", "gpt", first.c_str(), 4, copies},
      {"optimizer", "gpt", first.c_str(), 2, dealt},
      {"gradients", "pictures", biases.c_str(), 2, ema},
      {"gradients", "gpt", biases.c_str(), 3, {kBuckets, kOnce}},
      {"gradients", "gpt", first.c_str(), 2, dealt},
      {"parameters", "gpt", first.c_str(), 3, frozen},
      {"parameters", "gpt", biases.c_str(), 4, copies},
      {"parameters", "gpt", all.c_str(), 2, largest},
      {"parameters", "gpt", first.c_str(), 2, mixed},
      {"parameters", "gpt", R"(["wte.*", "wpe.*", "ln_f.*"])", 2, joined},
  };
  const tests::Folder folder;
  for (const Replicated& row : rows) {
    CAPTURE(row.shard, row.model, row.which, row.ranks, row.more);
    folder.write("recipe.yaml", std::string(row.model) == "pictures" ? kPictures : kText);
    Sets sets = {"training.max_steps=3"}, sharding = {std::string("parallelism.replicate=") + row.which};
    for (const std::string& set : row.more) {
      const bool is_of_sharding = set.starts_with("parallelism.") || set.starts_with("accumulation.");
      (is_of_sharding || set == kBuckets ? sharding : sets).push_back(set);
    }
    check_sharded(sets, row.shard, row.ranks, row.more == mixed ? 3e-3 : 1e-5, sharding);
  }
}

TEST_CASE("whole tensors are dealt so that each process has about as many elements", "[train][sharding]") {
  components::NamedTensors parameters;
  for (const std::int64_t size : {3, 8, 5, 3, 4, 1}) parameters.push_back({"p", at::empty({size})});
  CHECK(deal(parameters, 1) == std::vector<int>(6, 0));
  CHECK(deal(parameters, 2) == std::vector<int>{0, 0, 1, 1, 1, 0});
  CHECK(deal(parameters, 8) == std::vector<int>{3, 0, 1, 4, 2, 5});
  const at::Tensor whole = at::empty({4, 2});
  CHECK(shard_sizes(whole, {0, 3, 1}) == std::vector<std::int64_t>{0, 2});
  CHECK(shard_sizes(whole, {1, 3, 1}) == std::vector<std::int64_t>{4, 2});
  CHECK(shard_sizes(whole, {1, 3}) == std::vector<std::int64_t>{2, 2});
}

}  // namespace runner::train
