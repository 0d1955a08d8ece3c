// Which settings make the CPU wait for a device in every step. The reasons do not depend on the device.

#include "runner/train/experiment/step_wait.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/train/experiment/experiment.h"
#include "tests/components/data/tokenizer_folder.h"
#include "tests/support/folder.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

constexpr const char* kRecipe = R"(
recipe_version: 1
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic, task: regression, num_samples: 16}}
loss: mse
optimizer: {type: adamw, lr: 0.1}
training: {max_steps: 4, micro_batch_size: 4}
)";

}  // namespace

TEST_CASE("a step waits where something other than the device decides whether it is made", "[train][faults]") {
  struct Case {
    std::vector<std::string> sets;
    const char* reason;
  };
  const std::vector<Case> cases = {
      {{}, ""},
      {{"optimizer.type=adam"}, ""},
      {{"optimizer={type: sgd, lr: 0.1}"}, ""},
      {{"training.clip_grad_norm=1", "training.auto_micro_batch=halve"}, ""},
      {{"precision.mode=bf16-mixed"}, ""},
      {{"precision={mode: 16-mixed, scaler: {enabled: false}}"}, ""},
      {{"optimizer={type: lion, lr: 0.1}", "faults.on_nan=ignore"}, ""},
      {{"optimizer={type: lion, lr: 0.1}"}, "faults.on_nan is stop, and optimizer lion cannot skip a step on the GPU"},
      {{"optimizer={type: lomo, lr: 0.1}"}, "optimizer lomo steps in the backward pass"},
      {{"faults.on_nan=skip"}, "faults.on_nan is skip, which decides before the optimizer steps"},
      {{"faults.on_nan=rollback", "checkpoint.save_steps=2"},
       "faults.on_nan is rollback, which decides before the optimizer steps"},
      {{"faults={on_nan: ignore, on_spike: stop}"},
       "faults.on_spike is stop, which decides before the optimizer steps"},
      {{"precision.mode=16-mixed"},
       "precision.mode is 16-mixed, and the loss scale and learning rate of the next step depend on an overflow in "
       "this one"},
      {{"launch.num_processes=2"}, "the CPU waits for what the processes exchange"},
  };
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  for (const Case& c : cases) {
    INFO(c.reason);
    CHECK(step_wait_reason(*tests::experiment_of_recipe(c.sets)) == c.reason);
  }
}

TEST_CASE("a step waits for what the routers of a mixture choose", "[train][faults]") {
  const tests::TokenizerFolder folder(R"({"prompt": "a", "completion": " b"})"
                                      "\n");
  folder.write("recipe.yaml", R"(
recipe_version: 1
model: {type: transformers, config: {model_type: qwen3_moe, hidden_size: 16, intermediate_size: 16, moe_intermediate_size: 8,
        num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 2, num_experts: 4, num_experts_per_tok: 2,
        decoder_sparse_step: 2, vocab_size: 500}}
tokenizer: {type: file, path: tokenizer.json}
data: {train: {type: jsonl, path: a.jsonl}}
loss: cross_entropy
optimizer: {type: adamw, lr: 0.1}
training: {max_steps: 1, micro_batch_size: 1}
)");
  CHECK(step_wait_reason(*tests::experiment_of_recipe()) ==
        "the CPU reads which experts the router of h.1 chose, as their products are as large");
  CHECK(step_wait_reason(*tests::experiment_of_recipe({"model.config.decoder_sparse_step=3"})).empty());
}

TEST_CASE("a step waits where the loss needs an estimate of all its samples", "[train][faults]") {
  const tests::TokenizerFolder folder(R"({"prompt": "a", "completion": " b", "label": true})"
                                      "\n");
  folder.write("recipe.yaml", R"(
recipe_version: 1
model: {type: llama, n_layer: 1, n_head: 2, n_embd: 16}
tokenizer: {type: file, path: tokenizer.json}
data: {train: {type: jsonl, path: a.jsonl}}
loss: kto
optimizer: {type: adamw, lr: 0.1}
training: {max_steps: 1, micro_batch_size: 1}
)");
  CHECK(step_wait_reason(*tests::experiment_of_recipe()) ==
        "the loss is compared with an estimate of the whole step, made before its first backward pass");
  CHECK(step_wait_reason(*tests::experiment_of_recipe({"loss.loss_type=apo_zero_unpaired"})).empty());
}

TEST_CASE("a step waits where the reference is asked in each of them", "[train][faults][preferences]") {
  const tests::TokenizerFolder folder(R"({"prompt": "a", "chosen": " b", "rejected": " c"})"
                                      "\n");
  folder.write("recipe.yaml", R"(
recipe_version: 1
model: {type: llama, n_layer: 1, n_head: 2, n_embd: 16}
tokenizer: {type: file, path: tokenizer.json}
data: {train: {type: jsonl, path: a.jsonl, streaming: true}}
loss: dpo
optimizer: {type: adamw, lr: 0.1}
training: {max_steps: 1, micro_batch_size: 1}
)");
  CHECK(step_wait_reason(*tests::experiment_of_recipe()) ==
        "the reference is asked about the pairs of each step, before its first pass");
  for (const char* set : {"loss.reference_free=true", "loss=cpo", "data.train.streaming=false"}) {
    CHECK(step_wait_reason(*tests::experiment_of_recipe({set})).empty());
  }
}

}  // namespace runner::train
