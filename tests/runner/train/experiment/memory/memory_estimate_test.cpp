#include "runner/train/experiment/memory/memory_estimate.h"

#include <ATen/ops/_unique2.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "components/tensor/tensors.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

constexpr const char* kRecipe = R"(
model: {type: mlp, hidden: [16, 16]}
data: {train: {type: synthetic, task: spirals, num_samples: 60, num_classes: 2}}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 20, micro_batch_size: 8}
)";

TEST_CASE("a pass that the meta device cannot follow is named, and the rest is counted", "[memory]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  BuildOptions meta;
  meta.meta = true;
  const tests::Built built = tests::build_recipe_file({}, meta);
  INFO(built.messages);
  REQUIRE(built.experiment != nullptr);
  const auto& model = *built.experiment->model;
  const std::string second = model.blocks().at(1)->name();
  built.experiment->model->add_hooks(
      {.before_forward = {}, .after_forward = [&](const components::block::Block& block, components::TensorMap& map) {
         if (block.name() == second) at::_unique2(map.at(block.outputs().front().name));  // its shape is in its numbers
       }});
  const MemoryEstimate estimate = estimate_memory(*built.experiment);
  CHECK(estimate.unknown.find("in the forward pass of " + second + ": ") == 0);
  CHECK(estimate.unknown.find("aten::_unique2") != std::string::npos);
  CHECK(estimate.weights > 0);
  CHECK(estimate.optimizer == 2 * estimate.weights);
}

TEST_CASE("a GPU holds one micro-batch, and the others of a step wait in the memory of the CPU", "[memory]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  BuildOptions meta;
  meta.meta = true;
  const auto on = [&meta](const std::string& device) {
    const tests::Built built = tests::build_recipe_file(
        {"device=" + device, "training.gradient_accumulation_steps=3", "loader={num_workers: 2, prefetch_factor: 1}"},
        meta);
    INFO(built.messages);
    REQUIRE(built.experiment != nullptr);
    return estimate_memory(*built.experiment);
  };
  constexpr double kBatch = 8 * (2 * sizeof(float) + sizeof(std::int64_t));  // points, and their class
  const MemoryEstimate cpu = on("cpu"), gpu = on("cuda:0");
  CHECK(cpu.batches == 5 * kBatch);
  CHECK(cpu.waiting_batches == 0);
  CHECK(gpu.batches == kBatch);
  CHECK(gpu.waiting_batches == 5 * kBatch);
  CHECK(gpu.host() == gpu.weights + gpu.waiting_batches + gpu.data_sets + gpu.copies + gpu.program);
  CHECK(gpu.process() == gpu.tensors() + gpu.waiting_batches + gpu.data_sets + gpu.copies + gpu.program);
}

}  // namespace
}  // namespace runner::train
