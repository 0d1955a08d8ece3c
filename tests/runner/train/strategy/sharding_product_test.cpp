// Sharded trainings of 20 steps beside those of one process: each pair of values of two columns, and by name all of
// them. Ranks are threads.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/folder.h"
#include "tests/support/torch/sharded_training_torch.h"

namespace runner::train {
namespace {

using Sets = std::vector<std::string>;
using tests::train_on_ranks;
using tests::Trained;

constexpr const char* kText = R"(
seed: 5
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 12, vocab_size: 256}
data: {train: {type: text, path: recipe.yaml, max_seq_len: 4}}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.1, momentum: 0.9}
training: {max_steps: 20, micro_batch_size: 2, global_batch_size: 48, clip_grad_norm: 0.5}
)";

constexpr const char* kPictures = R"(
seed: 5
model:
  type: sequential
  layers:
    - {type: conv2d, out_channels: 5, kernel_size: 3, padding: 1}
    - {type: residual, body: [{type: conv2d, out_channels: 5, kernel_size: 3, padding: 1}, relu], activation: relu}
    - {type: residual, body: [{type: conv2d, out_channels: 5, kernel_size: 1}, {type: group_norm, num_groups: 1}]}
    - flatten
    - {type: linear, out_features: 4}
data: {train: {type: synthetic_images, num_samples: 64, num_classes: 4, height: 4, width: 4}}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.1, momentum: 0.9}
training: {max_steps: 20, micro_batch_size: 2, global_batch_size: 48, clip_grad_norm: 0.5}
)";

/// The values of each column: what is sharded; shards x copies; precision; accumulation; checkpointing; model.
const std::vector<Sets> kColumns = {{"optimizer", "gradients", "parameters"},
                                    {"2x1", "3x1", "4x1", "2x2"},
                                    {"32-true", "bf16-mixed"},
                                    {"1", "4"},
                                    {"none", "full"},
                                    {"gpt", "llama", "pictures"}};
enum Column { kShard, kMesh, kPrecision, kAccumulation, kRecomputed, kModel };

std::vector<Sets> all_rows() {
  std::vector<Sets> rows = {{}};
  for (const Sets& column : kColumns) {
    std::vector<Sets> longer;
    for (const Sets& row : rows) {
      for (const std::string& value : column) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    }
    rows = std::move(longer);
  }
  return rows;
}

/// Rows that have each pair of values of two columns, taken one by one where they have the most new pairs.
std::vector<Sets> paired_rows() {
  const auto pairs = [](const Sets& row) {
    std::set<std::array<std::string, 2>> found;
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) found.insert({std::to_string(j) + row[j], std::to_string(i) + row[i]});
    }
    return found;
  };
  const std::vector<Sets> all = all_rows();
  std::set<std::array<std::string, 2>> open;
  for (const Sets& row : all) open.merge(pairs(row));
  std::vector<Sets> rows;
  while (!open.empty()) {
    std::size_t most = 0;
    const Sets* best = nullptr;
    for (const Sets& row : all) {
      const auto of_row = pairs(row);
      const auto fresh = static_cast<std::size_t>(
          std::count_if(of_row.begin(), of_row.end(), [&](const auto& pair) { return open.contains(pair); }));
      if (fresh > most) {
        most = fresh;
        best = &row;
      }
    }
    for (const auto& pair : pairs(*best)) open.erase(pair);
    rows.push_back(*best);
  }
  return rows;
}

/// The largest difference, relative to the largest number.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return most / largest;
}

/// Trainings of one process, each made once.
class Alone {
 public:
  const Trained& of(const std::string& model, const Sets& sets) {
    std::string key = model;
    for (const std::string& set : sets) key += " " + set;
    const auto found = made_.find(key);
    return found != made_.end() ? found->second : made_.emplace(key, train_on_ranks(sets, 1)).first->second;
  }

 private:
  std::map<std::string, Trained> made_;
};

/// Trains a row, and once more for `again` steps.
void check_row(const tests::Folder& folder, const Sets& row, int again, Alone& alone) {
  CAPTURE(row);
  const std::string& model = row[kModel];
  folder.write("recipe.yaml", model == "pictures" ? kPictures : kText);
  const int shards = row[kMesh][0] - '0', copies = row[kMesh][2] - '0', ranks = shards * copies;
  Sets sets = {"training.micro_batch_size=" + std::to_string(48 / (ranks * std::stoi(row[kAccumulation])))};
  if (row[kRecomputed] != "none") sets.push_back("activation_checkpointing.mode=" + row[kRecomputed]);
  if (model == "llama")
    sets.push_back("model={type: llama, n_layer: 2, n_head: 2, n_kv_head: 1, n_embd: 12, vocab_size: 256}");
  const auto with = [](Sets some, const Sets& more) {
    some.insert(some.end(), more.begin(), more.end());
    return some;
  };
  const Sets sharding = {"parallelism={shard: " + row[kShard] + ", dp_replicate_size: " + std::to_string(copies) + "}"};
  const Trained& whole = alone.of(model, sets);
  const Sets mode = {"precision.mode=" + row[kPrecision]};
  const Trained several = train_on_ranks(with(with(sets, mode), sharding), ranks);
  if (row[kPrecision] == "32-true") {
    CHECK(distance(several.losses, whole.losses) < 1e-5);
    CHECK(distance(several.weights, whole.weights) < 1e-5);
    // A step of SGD at this rate moves the weights by the gradients that AdamW would get.
    const Sets adamw = {"optimizer={type: adamw, lr: 0.001}"},
               first = {"optimizer={type: sgd, lr: 1.0}", "training.max_steps=1", "training.clip_grad_norm=null"};
    if (again == 20)
      CHECK(distance(train_on_ranks(with(with(sets, adamw), sharding), ranks).losses,
                     alone.of(model, with(sets, adamw)).losses) < 1e-5);
    CHECK(distance(train_on_ranks(with(with(sets, first), sharding), ranks).weights,
                   alone.of(model, with(sets, first)).weights) < 1e-5);
  } else {
    const double own = distance(alone.of(model, with(sets, mode)).losses, whole.losses);
    CHECK(distance(several.losses, whole.losses) <= 1.5 * own);
  }
  const Sets fewer = {"training.max_steps=" + std::to_string(again)};
  const Trained twice = train_on_ranks(with(with(with(sets, mode), sharding), fewer), ranks);
  CHECK(std::equal(twice.losses.begin(), twice.losses.end(), several.losses.begin()));
  if (again == 20) CHECK(twice.weights == several.weights);
}

}  // namespace

TEST_CASE("20 sharded steps are those of one process for each pair of what a recipe combines", "[train][sharding]") {
  const tests::Folder folder;
  Alone alone;
  for (const Sets& row : paired_rows()) check_row(folder, row, 5, alone);
}

TEST_CASE("20 sharded steps are those of one process for all that a recipe combines", "[.][sharding-product]") {
  const tests::Folder folder;
  Alone alone;
  const std::vector<Sets> rows = all_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_row(folder, rows[i], 20, alone);
    if (i % 24 == 23) std::printf("%zu of %zu rows\n", i + 1, rows.size());
  }
}

}  // namespace runner::train
