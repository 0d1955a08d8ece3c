#include "runner/train/step/accumulation_window.h"

#include <catch2/catch.hpp>

#include "runner/core/platform/files.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

constexpr const char* kRecipe = R"(
tokenizer: {type: file, path: tokenizer.json}
data: {train: {type: jsonl, path: a.jsonl, streaming: true, max_seq_len: 48}}
model: {type: llama, n_layer: 1, n_head: 2, n_embd: 16}
loss: cross_entropy
optimizer: sgd
training: {max_steps: 4, micro_batch_size: 2}
loader: {shuffle: false}
)";

}  // namespace

TEST_CASE("a window counts tokens without padding, and a stream's FLOPs by them", "[train][window]") {
  const tests::Folder folder;
  const std::string tokenizer = tests::source_dir() + "/recipes/examples/data/tokenizer.json";
  folder.write("tokenizer.json", core::read_file(tokenizer, 1 << 20).value());
  folder.write("recipe.yaml", kRecipe);
  folder.write("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two two two\"}\n");  // 2 and 6 tokens
  for (const bool streams : {true, false}) {
    const auto experiment = tests::experiment_of_recipe({streams ? "run_name=a" : "data.train.streaming=false"});
    const StepperOptions options = stepper_options(experiment->recipe);
    Loader loader(*experiment->train_data, loader_options(*experiment, options));
    AccumulationWindow window(*experiment, loader, options);
    for (int step = 0; step < 2; ++step) {
      window.fetch(2);
      CHECK(window.tokens() == 2 + 6);
      CHECK(window.target_tokens() == 1 + 5);
      const auto& model = *experiment->model;
      CHECK(window.flops() == (streams ? model.training_flops(2) + model.training_flops(6) : 0.0));
    }
  }
}

}  // namespace runner::train
