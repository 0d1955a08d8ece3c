#include "runner/train/strategy/block_units.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

/// Layers of 8, 6, 0, 6, 6, 20 and 12 parameters, and the last one.
constexpr const char* kRecipe = R"(
seed: 5
model:
  type: sequential
  layers:
    - {type: linear, out_features: 2, bias: false}
    - {type: linear, out_features: 3, bias: false}
    - relu
    - {type: linear, out_features: 2, bias: false}
    - {type: linear, out_features: 3, bias: false}
    - {type: linear, out_features: 5}
    - {type: linear, out_features: 2}
    - {type: linear, out_features: 1}
data: {train: {type: synthetic, task: regression, num_samples: 8, in_features: 4}}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 1, global_batch_size: 8}
)";

constexpr int kNone = -1;
using OfBlock = std::vector<int>;

OfBlock by_block(const components::model::Model& model, const UnitSizes& sizes) {
  OfBlock units;
  for (const auto& unit : units_of(model, sizes).of_block) units.push_back(unit ? static_cast<int>(*unit) : kNone);
  return units;
}

}  // namespace

TEST_CASE("consecutive blocks are one unit up to the size that is asked for", "[train][sharding]") {
  struct Row {
    const char* what;
    UnitSizes sizes;
    OfBlock units;
  };
  const Row rows[] = {
      {"each block", {}, {0, 1, kNone, 2, 3, 4, 5, 0}},
      {"two small ones", {.min_elements = 12}, {0, 1, kNone, 1, 2, 2, 3, 0}},
      {"what is left joins the last unit", {.min_elements = 18}, {0, 1, kNone, 1, 1, 2, 2, 0}},
      {"just enough for all", {.min_elements = 50}, {0, 1, kNone, 1, 1, 1, 1, 0}},
      {"not enough for a unit", {.min_elements = 51}, {0, 0, kNone, 0, 0, 0, 0, 0}},
      {"no units", {.whole_model = true}, {0, 0, kNone, 0, 0, 0, 0, 0}},
  };
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto experiment = tests::experiment_of_recipe();
  const components::model::Model& model = *experiment->model;
  REQUIRE(model.blocks().size() == 8);
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const BlockUnits units = units_of(model, row.sizes);
    CHECK(by_block(model, row.sizes) == row.units);
    REQUIRE(units.first_block.size() == units.last_block.size());
    for (std::size_t unit = 1; unit < units.first_block.size(); ++unit) {
      CHECK(units.of_block[units.first_block[unit]] == unit);
      CHECK(units.of_block[units.last_block[unit]] == unit);
    }
  }
}

TEST_CASE("blocks that are recomputed together are in one unit, and tied ones stay", "[train][sharding]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto experiment = tests::experiment_of_recipe();
  experiment->model->set_recomputed({{.first = 1, .count = 3}, {.first = 4, .count = 2}});
  CHECK(by_block(*experiment->model, {}) == OfBlock{0, 1, kNone, 1, 2, 2, 3, 0});
  CHECK(by_block(*experiment->model, {.min_elements = 13}) == OfBlock{0, 1, kNone, 1, 1, 1, 1, 0});
  CHECK(by_block(*experiment->model, {.min_elements = 12}) == OfBlock{0, 1, kNone, 1, 2, 2, 3, 0});

  experiment->model->set_recomputed({});
  folder.write("recipe.yaml", R"(
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 4, vocab_size: 256}
data: {train: {type: text, path: recipe.yaml, max_seq_len: 8}}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 1, global_batch_size: 8}
)");
  const auto tied = tests::experiment_of_recipe();
  const BlockUnits units = units_of(*tied->model, {});
  CHECK(units.of_block.front() == 0);
  CHECK(units.of_block.back() == 0);
  CHECK(units.first_block == std::vector<std::size_t>{0, 1, 2});
}

}  // namespace runner::train
