// Activations that are computed again: the same bits, in less memory.

#include "runner/train/experiment/activation_checkpointing.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "components/block/basic_block.h"
#include "components/ops/kernel_policy.h"
#include "components/tensor/tensors.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/step/stepper.h"
#include "tests/support/torch/built_experiment_torch.h"
#include "tests/support/torch/memory_counter_torch.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

using components::TensorMap;
using components::block::BasicBlock;
using components::block::Block;
using components::model::Model;

constexpr const char* kGpt = R"(
recipe_version: 1
model: {type: gpt, n_layer: 5, n_head: 2, n_embd: 32}
data: {train: {type: text, path: corpus.txt, max_seq_len: 16}}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 100, micro_batch_size: 2, gradient_accumulation_steps: 2, clip_grad_norm: 1.0}
)";

constexpr const char* kMlp = R"(
recipe_version: 1
model: {type: mlp, hidden: [24, 32, 40, 48], activation: gelu}
data: {train: {type: synthetic, task: spirals, num_samples: 200}}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 100, micro_batch_size: 16, gradient_accumulation_steps: 2}
)";

constexpr const char* kLayers = R"(
recipe_version: 1
model:
  type: sequential
  layers:
    - {type: linear, out_features: 24}
    - layer_norm
    - relu
    - {type: dropout, p: 0.2}
    - {type: linear, out_features: 32}
    - silu
    - flatten
    - {type: linear, out_features: 3}
data: {train: {type: synthetic, task: spirals, num_samples: 200}}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 100, micro_batch_size: 16, gradient_accumulation_steps: 2}
)";

constexpr const char* kMixture = R"(
recipe_version: 1
model:
  type: transformers
  router_aux_loss_coef: 0.1
  config: {model_type: qwen3_moe, num_hidden_layers: 5, num_attention_heads: 2, num_key_value_heads: 1, hidden_size: 16,
           intermediate_size: 16, moe_intermediate_size: 8, num_experts: 4, num_experts_per_tok: 2, vocab_size: 256,
           mlp_only_layers: [1]}
data: {train: {type: text, path: corpus.txt, max_seq_len: 16}}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 100, micro_batch_size: 2, gradient_accumulation_steps: 2, clip_grad_norm: 1.0}
)";

using Sets = std::vector<std::string>;

Sets with(Sets sets, const std::string& more) {
  sets.push_back(more);
  return sets;
}

/// Loss and gradient norm of each step.
std::vector<double> train_some(Experiment& experiment) {
  Stepper stepper(experiment, stepper_options(experiment.recipe));
  std::vector<double> figures;
  for (int i = 0; i < 2; ++i) {
    const StepResult result = stepper.step(true);
    figures.push_back(result.loss);
    figures.push_back(result.grad_norm.value());
  }
  return figures;
}

/// How often each block's forward pass ran.
std::map<std::string, int> count_passes(Model& model, const std::function<void()>& run) {
  auto counts = std::make_shared<std::map<std::string, int>>();
  model.add_hooks(
      {.before_forward = [counts](const Block& block, TensorMap&) { ++(*counts)[block.name()]; }, .after_forward = {}});
  run();
  return *counts;
}

/// Adds up what it sees, as running statistics do.
class Counting final : public BasicBlock {
 public:
  Counting(const std::string& name, components::part::WeightMaker& weights)
      : BasicBlock(name, {"x", components::Dtype::kFloat32, {components::kBatch, 4}},
                   {"x", components::Dtype::kFloat32, {components::kBatch, 4}}, weights),
        passes_(at::zeros({1})) {
    add_parameter(name + ".weight", {4}, components::part::constant(1.0));
  }
  void forward(TensorMap& activations) const override {
    passes_.add_(1);
    write(activations, at::sin(read(activations) * parameter(0) + passes_));
  }
  std::vector<components::NamedTensor> buffers() const override { return {{name() + ".passes", passes_}}; }

 private:
  at::Tensor passes_;
};

/// The most that tensors held during the second step, beyond what they held before it.
std::int64_t step_bytes(const std::string& recipe, const Sets& sets) {
  const auto experiment = tests::experiment_of(recipe, sets);
  Stepper stepper(*experiment, stepper_options(experiment->recipe));
  stepper.step(false);
  const tests::MemoryCounter memory;
  stepper.step(false);
  return memory.peak_bytes();
}

}  // namespace

TEST_CASE("recomputed activations change no bit of losses, gradient norms and weights", "[activation_checkpointing]") {
  struct Case {
    const char* name;
    const char* recipe;
    Sets sets;
  };
  const Case cases[] = {
      {"gpt, fused", kGpt, {}},
      {"gpt, fused, bf16", kGpt, {"precision=bf16-mixed", "model.positions=rotary"}},
      {"gpt, plain", kGpt, {"training.fused_kernels=false"}},
      {"gpt, plain, bf16", kGpt, {"precision=bf16-mixed", "training.fused_kernels=false", "model.bias=false"}},
      {"gpt, dropout", kGpt, {"model.dropout=0.2", "model.tie_embeddings=false"}},
      {"gpt, noise", kGpt, {"model.dropout=0.2", "training.neftune_noise_alpha=5"}},
      {"gpt, dropout, bf16", kGpt, {"model.dropout=0.2", "precision=bf16-mixed"}},
      {"gpt, no autocast cache",
       kGpt,
       {"model.dropout=0.2", "precision={mode: bf16-mixed, autocast: {cache_enabled: false}}"}},
      {"gpt, bf16-true", kGpt, {"precision=bf16-true"}},
      {"gpt, 16-mixed", kGpt, {"precision={mode: 16-mixed, scaler: {init_scale: 256}}"}},
      {"gpt, formats by block",
       kGpt,
       {"model.dropout=0.1", "precision={mode: bf16-mixed, overrides: {h.1: 32-true, h.3: bf16-true}}"}},
      {"mlp", kMlp, {"model.dropout=0.2"}},
      {"mlp, fused ReLU", kMlp, {"model.activation=relu"}},
      {"mlp, bf16", kMlp, {"precision=bf16-mixed"}},
      {"mlp, formats by block",
       kMlp,
       {"precision={mode: 32-true, overrides: {layers.1: bf16-mixed, layers.2: bf16-true}}"}},
      {"layers", kLayers, {}},
      {"layers, bf16", kLayers, {"precision=bf16-mixed"}},
      {"mixture", kMixture, {}},
      {"mixture, bf16", kMixture, {"precision=bf16-mixed"}},
      {"mixture, formats by block",
       kMixture,
       {"precision={mode: bf16-mixed, overrides: {h.1: 32-true, h.3: bf16-true}}"}},
  };
  const char* modes[] = {"full", "{mode: full, segment: 3}", "selective", "{mode: selective, segment: 2, every: 2}"};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const bool plain = std::find(c.sets.begin(), c.sets.end(), "training.fused_kernels=false") != c.sets.end();
      components::set_fused_kernels(!plain);
      const auto kept = tests::experiment_of(c.recipe, c.sets);
      const std::vector<double> expected = train_some(*kept);
      for (const char* mode : modes) {
        INFO(mode);
        const auto recomputed =
            tests::experiment_of(c.recipe, with(c.sets, std::string("activation_checkpointing=") + mode));
        CHECK(train_some(*recomputed) == expected);
        CHECK(tests::same_bits(*recomputed, *kept));
      }
      components::set_fused_kernels(true);
    }
  }
}

TEST_CASE("weights that are frozen, or whose inputs are, change no bit either", "[activation_checkpointing]") {
  struct Case {
    const char* frozen;
    const char* dropout;
  };
  for (const Case& c : {Case{"w", "0"}, {"h.2.attn", "0"}, {"h.0", "0.1"}, {"ln", "0.1"}}) {
    INFO(c.frozen << " with dropout " << c.dropout);
    const auto freeze = [&c](const Experiment& experiment) {
      for (const auto& parameter : experiment.model->parameters()) {
        if (parameter.name.find(c.frozen) != std::string::npos) parameter.tensor.set_requires_grad(false);
      }
    };
    const Sets sets = {std::string("model.dropout=") + c.dropout, "model.tie_embeddings=false"};
    const auto kept = tests::experiment_of(kGpt, sets);
    freeze(*kept);
    const std::vector<double> expected = train_some(*kept);
    for (const char* mode : {"full", "{mode: selective, segment: 2}"}) {
      const auto recomputed = tests::experiment_of(kGpt, with(sets, std::string("activation_checkpointing=") + mode));
      freeze(*recomputed);
      CHECK(train_some(*recomputed) == expected);
      CHECK(tests::same_bits(*recomputed, *kept));
    }
  }
}

TEST_CASE("each block that the section names runs twice in a training step, and once in an evaluation",
          "[activation_checkpointing]") {
  struct Case {
    const char* recipe;
    const char* mode;
    std::vector<std::string> twice;
  };
  const Case cases[] = {
      {kGpt, "none", {}},
      {kGpt, "full", {"h.0", "h.1", "h.2", "h.3", "h.4"}},
      {kGpt, "{mode: full, every: 2}", {"h.0", "h.2", "h.4"}},
      {kGpt, "{mode: selective, every: 3}", {"h.0", "h.3"}},
      {kGpt, "{mode: full, segment: 2, every: 2}", {"h.0", "h.1", "h.4"}},
      {kMlp, "{mode: full, segment: 100}", {"layers.0", "layers.1", "layers.2", "layers.3"}},
  };
  for (const Case& c : cases) {
    INFO(c.mode);
    const auto experiment = tests::experiment_of(
        c.recipe, {std::string("activation_checkpointing=") + c.mode, "training.gradient_accumulation_steps=1"});
    Stepper stepper(*experiment, stepper_options(experiment->recipe));
    std::map<std::string, int> expected;
    for (const auto& block : experiment->model->blocks()) expected[block->name()] = 1;
    for (const std::string& name : c.twice) expected[name] = 2;
    CHECK(count_passes(*experiment->model, [&] { stepper.step(false); }) == expected);

    for (auto& [name, passes] : expected) passes = 1;
    TensorMap batch;
    const std::int64_t first[] = {0, 1};
    experiment->train_data->fetch(first, batch);
    const at::NoGradGuard no_grad;
    CHECK(count_passes(*experiment->model, [&] { experiment->model->forward(batch); }) == expected);
  }
}

TEST_CASE("buffers that a forward pass moves are moved once", "[activation_checkpointing]") {
  std::vector<std::vector<at::Tensor>> results;
  for (const std::size_t recomputed : {0, 1, 2}) {
    components::part::DrawnWeights weights;
    std::vector<std::unique_ptr<Block>> blocks;
    for (const char* name : {"a", "b", "c"}) blocks.push_back(std::make_unique<Counting>(name, weights));
    Model model(std::move(blocks));
    if (recomputed > 0) model.set_recomputed({{.first = 0, .count = recomputed}});
    for (int pass = 0; pass < 2; ++pass) {
      TensorMap activations;
      activations.set("x", at::linspace(0, 1, 8).reshape({2, 4}));
      model.forward(activations);
      activations.at("x").sum().backward();
    }
    auto& result = results.emplace_back();
    for (const auto& buffer : model.buffers()) result.push_back(buffer.tensor.clone());
    for (const auto& parameter : model.parameters()) result.push_back(parameter.tensor.grad());
  }
  for (const auto& result : results) {
    CHECK(result[0].item<double>() == 2.0);
    for (std::size_t i = 0; i < result.size(); ++i) CHECK(result[i].equal(results[0][i]));
  }
}

TEST_CASE("a step needs as much less memory as the section promises", "[activation_checkpointing]") {
  for (const bool fused : {true, false}) {
    components::set_fused_kernels(fused);
    INFO((fused ? "fused" : "plain"));
    const Sets sets = {"model.n_layer=8", "model.n_head=4", "training.gradient_accumulation_steps=1",
                       "training.micro_batch_size=16", "data.train.max_seq_len=32"};
    const auto bytes = [&](const std::string& mode) {
      return static_cast<double>(step_bytes(kGpt, with(sets, "activation_checkpointing=" + mode)));
    };
    const double none = bytes("none"), full = bytes("full");
    // B T C = 16 x 32 x 32 float32: what goes into each of the eight blocks, and the inside of one of them.
    const double stream = 16 * 32 * 32 * 4;
    CHECK(full < none - 7 * 14 * stream);
    CHECK(bytes("{mode: full, every: 2}") < none - 3 * 14 * stream);
    CHECK(bytes("{mode: full, every: 2}") > full);
    CHECK(bytes("{mode: full, segment: 8}") > full);  // the whole inside at once
    const double selective = bytes("selective");
    if (!fused) CHECK(selective > full);  // the fused attention leaves so little that one whole inside is more
    CHECK(selective < none - 7 * 5 * stream);
  }
  components::set_fused_kernels(true);
}

TEST_CASE("a model without a block to repeat refuses the section", "[activation_checkpointing]") {
  CHECK(tests::build_recipe(kMlp, {"model.hidden=[]", "activation_checkpointing=full"}).messages ==
        "--set activation_checkpointing=full: error: this model has no block to recompute: the last one and blocks "
        "that read ids are never recomputed\n"
        "  hint: leave activation_checkpointing out; a smaller training.micro_batch_size needs less memory\n");
}

}  // namespace runner::train
