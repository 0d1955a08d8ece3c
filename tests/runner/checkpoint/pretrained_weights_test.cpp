// Weights of Transformers folders in models that are not quite those of the folder. The folders are those of
// tests/parity/models.

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/model/model.h"
#include "components/part/weight.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/checkpoint/init_from.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/pretrained/config.h"
#include "runner/train/experiment/experiment.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/built_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string folder(const std::string& name) { return tests::source_dir() + "/tests/parity/models/" + name; }

/// A recipe of one step on the folder's ids; `model` is its `model:` or empty.
std::string recipe_of(const std::string& ids, const std::string& init, const std::string& model) {
  return "init_from: " + init + "\ndata: {train: {type: ids, path: " + ids + "}}\nloss: cross_entropy\n" +
         (model.empty() ? "" : "model: " + model + "\n") +
         "optimizer: {type: adamw, lr: 0.001}\ntraining: {max_steps: 1, micro_batch_size: 2}\n";
}

struct Answer {
  std::unique_ptr<train::Experiment> experiment;
  std::optional<InitWeights> weights;
  std::string messages;  ///< with MODELS in place of the folders' folder

  at::Tensor parameter(const std::string& name) const {
    for (const auto& named : experiment->model->parameters()) {
      if (named.name == name) return named.tensor.detach();
    }
    return {};
  }
};

Answer ask(const std::string& recipe) {
  Answer answer;
  answer.experiment = tests::experiment_of(recipe);
  const resolve::Recipe& of = answer.experiment->recipe;
  core::Diagnostics diagnostics;
  answer.weights =
      plan_init_from(*of.init_from, of.at("init_from"), of.root, *answer.experiment->model, of.output_dir, diagnostics);
  core::RenderOptions options;
  options.excerpts = false;
  answer.messages = core::render(diagnostics, options);
  const std::string models = tests::source_dir() + "/tests/parity/models";
  for (std::size_t at; (at = answer.messages.find(models)) != std::string::npos;) {
    answer.messages.replace(at, models.size(), "MODELS");
  }
  if (answer.weights) load_init_weights(*answer.weights, *answer.experiment->model);
  return answer;
}

Answer ask(const std::string& name, const std::string& init, const std::string& model) {
  return ask(recipe_of(folder(name) + "/ids.jsonl", init, model));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const char* const kGrouped = "type: llama, n_layer: 2, n_head: 4, n_kv_head: 2, n_embd: 16, mlp_width: 20";

TEST_CASE("what a model of its own computes differently is warned of", "[checkpoint][init_from]") {
  const std::string grouped = folder("llama-grouped");
  const auto own = [&](const std::string& more) {
    return ask("llama-grouped", grouped,
               std::string("{") + kGrouped + ", n_positions: 32, vocab_size: 40" + more + "}");
  };
  CHECK(own("").messages == "");
  const Answer theta = own(", rotary_base: 500000, norm_eps: 1e-5");
  CHECK(theta.weights);
  CHECK(theta.messages ==
        "recipe.yaml:4:150: warning: model.norm_eps is 1e-5, but MODELS/llama-grouped/config.json has rms_norm_eps "
        "1e-6: the model will compute something else of its weights\n"
        "  hint: leave `model` out to take that of the folder, or set model.norm_eps to 1e-6\n"
        "recipe.yaml:4:132: warning: model.rotary_base is 500000, but MODELS/llama-grouped/config.json has rope_theta "
        "10000: the model will compute something else of its weights\n"
        "  hint: leave `model` out to take that of the folder, or set model.rotary_base to 10000\n");
  CHECK(contains(own(", activation: gelu").messages, "model.activation is gelu, but "));
  CHECK(contains(own(", sliding_window: 3").messages, "model.sliding_window is 3, but "));
  CHECK(contains(own(", rope_scaling: {rope_type: linear, factor: 2}").messages,
                 "model.rope_scaling.rope_type is linear, but MODELS/llama-grouped/config.json has rope_type default"));
  // The same widths of queries, keys and values, cut into other heads.
  const Answer heads = ask("llama-grouped", grouped,
                           "{type: llama, n_layer: 2, n_head: 2, n_kv_head: 1, n_embd: 16, mlp_width: 20, "
                           "n_positions: 32, vocab_size: 40}");
  CHECK(contains(heads.messages, "model.n_head is 2, but MODELS/llama-grouped/config.json has num_attention_heads 4"));
  const Answer gelu =
      ask("gpt2-default", folder("gpt2-gelu-unscaled"),
          "{type: gpt, n_layer: 2, n_head: 2, n_embd: 16, vocab_size: 40, n_positions: 20, dropout: 0}");
  CHECK(contains(gelu.messages,
                 "the model's activation_function is gelu_new, but MODELS/gpt2-gelu-unscaled/config.json "
                 "has activation_function gelu: "));
  // A configuration in the recipe is compared, too.
  const Answer other =
      ask("qwen2-window", folder("qwen2-window"), "{type: transformers, config: " + folder("qwen2-default") + "}");
  CHECK(contains(other.messages,
                 "model.config.sliding_window is unset, but MODELS/qwen2-window/config.json has sliding_window [0, 6] "
                 "by layer"));
}

TEST_CASE("weights without a config.json go by the names of the model's type", "[checkpoint][init_from]") {
  const tests::TempDir dir;
  for (const char* name : {"llama-grouped", "gpt2-bare"}) {
    const std::string file = dir / (std::string(name) + ".safetensors");
    fs::copy_file(folder(name) + "/model.safetensors", file);
    const Answer answer = ask(name, file, "{type: transformers, config: " + folder(name) + "}");
    CHECK(answer.messages == "");
    REQUIRE(answer.weights);
    CHECK(answer.weights->filled == answer.weights->tensors);
  }
}

/// A copy of a safetensors file with other names.
template <typename NameOf>
void copy_renamed(const std::string& from, const std::string& to, const NameOf& name_of) {
  std::ifstream in(from, std::ios::binary);
  std::uint64_t size = 0;
  in.read(reinterpret_cast<char*>(&size), sizeof size);
  std::string text(size, ' ');
  in.read(text.data(), static_cast<std::streamsize>(size));
  const nlohmann::json read = nlohmann::json::parse(text);
  nlohmann::json header;
  for (const auto& [name, entry] : read.items()) {
    header[name == "__metadata__" ? name : name_of(name)] = entry;
  }
  text = header.dump();
  size = text.size();
  std::ofstream out(to, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << text << in.rdbuf();
}

TEST_CASE("weights of a Transformers model come out of PyTorch's wrappers", "[checkpoint][init_from]") {
  const tests::TempDir dir;
  for (const char* name : {"llama-grouped", "gpt2-bare"}) {
    const Answer plain = ask(name, folder(name), "");
    for (const bool has_config : {true, false}) {
      for (const char* wrapper : {"_orig_mod.", "module.", "model._orig_mod."}) {
        INFO(name << " " << wrapper << " " << has_config);
        const std::string copy = dir / "copy";
        fs::remove_all(copy);
        fs::create_directory(copy);
        if (has_config) fs::copy_file(folder(name) + "/config.json", copy + "/config.json");
        copy_renamed(folder(name) + "/model.safetensors", copy + "/model.safetensors",
                     [&](const std::string& tensor) { return wrapper + tensor; });
        const Answer answer = ask(name, has_config ? copy : copy + "/model.safetensors",
                                  "{type: transformers, config: " + folder(name) + "}");
        CHECK(answer.messages == "");
        REQUIRE(answer.weights);
        CHECK(answer.weights->filled == answer.weights->tensors);
        CHECK(contains(answer.weights->text(), " (without `" + std::string(wrapper) + "` in its names)"));
        const auto expected = plain.experiment->model->parameters(), found = answer.experiment->model->parameters();
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i].tensor, expected[i].tensor));
      }
    }
  }
}

TEST_CASE("matrices of experts that a file lacks are named", "[checkpoint][init_from]") {
  const tests::TempDir dir;
  const std::string from = folder("qwen3_moe-default"), copy = dir / "copy", gone = "model.layers.1.mlp.experts.";
  fs::create_directory(copy);
  fs::copy_file(from + "/config.json", copy + "/config.json");
  const auto without = [&](const std::string& part) {
    copy_renamed(from + "/model.safetensors", copy + "/model.safetensors",
                 [&](const std::string& name) { return name.starts_with(gone + part) ? "optimizer." + name : name; });
    return ask("qwen3_moe-default", copy, "").messages;
  };
  CHECK(contains(without("2.up_proj"), " lacks 1 of the model's 21 tensors: " + gone + "2.up_proj.weight\n"));
  // The last one of all: the stack is a smaller one.
  CHECK(contains(without("4."), gone + "0.gate_proj.weight + "));
  CHECK(contains(without("4."), " is [4, 24, 16] there and [5, 24, 16] in the model"));
  CHECK(contains(without(""), " lacks 2 of the model's 21 tensors: h.1.mlp_experts_fc.weight, "));
}

/// What a model of the folder's configuration with that head takes from `source`; `classes`: of the data.
std::optional<InitWeights> for_head(const std::string& name, const std::string& head, std::int64_t classes,
                                    const std::string& source, core::Diagnostics& diagnostics) {
  using components::Dtype, components::kBatch;
  core::Node block = tests::block("model", "{type: transformers, config: {}, head: " + head + "}");
  block.set("config", *pretrained::read_config(folder(name) + "/config.json", diagnostics));
  components::BatchSpec data = tests::text_data(40, 16);
  *data.find(components::kTarget) = {components::kTarget, Dtype::kInt64, {kBatch}, false};
  data.find(components::kTarget)->num_classes = classes;
  components::part::DrawnWeights drawn;
  const auto model = components::model::build(block, {data, drawn, block, diagnostics});
  INFO(core::render(diagnostics));
  REQUIRE(model != nullptr);
  core::Node recipe = core::Node::mapping(), written = core::Node::mapping();
  recipe.set("model", block);
  written.set("path", core::Node::string(source));
  for (const char* key : {"include", "exclude"}) written.set(key, core::Node::sequence());
  sections::init_from::Config config;
  config.path = source;
  auto weights = plan_init_from(config, written, recipe, *model, ".", diagnostics);
  if (weights) load_init_weights(*weights, *model);
  return weights;
}

TEST_CASE("a head that is trained begins new where a file has none, or another one", "[checkpoint][init_from]") {
  const std::vector<std::string> last = {"head.weight", "head.bias"},
                                 whole = {"head.dense.weight", "head.dense.bias", "head.weight", "head.bias"};
  struct Case {
    const char* folder;
    std::int64_t classes;
    std::vector<std::string> left_out;
  };
  const Case cases[] = {{"bert-texts", 3, {}},
                        {"bert-texts", 5, last},
                        {"bert-masked", 3, whole},
                        {"roberta-masked", 3, whole},
                        {"distilbert-masked", 3, whole},
                        {"llama-pad-token", 3, {"head.weight"}},
                        {"gpt2-bare", 3, {"head.weight"}}};
  for (const Case& one : cases) {
    INFO(one.folder << " with " << one.classes);
    core::Diagnostics diagnostics;
    const auto weights = for_head(one.folder, "sequence_classification", one.classes, folder(one.folder), diagnostics);
    const std::string told = core::render(diagnostics, {.color = false, .excerpts = false});
    CHECK(told.starts_with(one.left_out.empty() ? "" : "notice: init_from: "));
    CHECK(told.empty() == one.left_out.empty());
    REQUIRE(weights);
    CHECK(weights->left_out == one.left_out);
    CHECK(weights->filled == weights->tensors - static_cast<std::int64_t>(one.left_out.size()));
  }
}

TEST_CASE("older names of norms are read", "[checkpoint][init_from]") {
  const tests::TempDir dir;
  fs::copy_file(folder("bert-texts") + "/config.json", dir / "config.json");
  copy_renamed(folder("bert-texts") + "/model.safetensors", dir / "model.safetensors", [](std::string name) {
    for (const auto& [now, before] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, std::pair{"LayerNorm.bias", "LayerNorm.beta"}}) {
      if (name.ends_with(now)) name.replace(name.size() - std::string_view(now).size(), std::string::npos, before);
    }
    return name;
  });
  core::Diagnostics diagnostics;
  const auto weights = for_head("bert-texts", "sequence_classification", 3, dir.path(), diagnostics);
  CHECK(core::render(diagnostics) == "");
  REQUIRE(weights);
  CHECK(weights->filled == weights->tensors);
}

TEST_CASE("a part of a joined tensor is left out alone", "[checkpoint][init_from]") {
  const std::string grouped = folder("llama-grouped");
  const Answer whole = ask("llama-grouped", grouped, "");
  const std::string k = "model.layers.1.self_attn.k_proj.weight";
  const Answer part = ask("llama-grouped", "{path: " + grouped + ", exclude: [" + k + "]}", "");
  CHECK(part.messages == "");
  REQUIRE(part.weights);
  CHECK(part.weights->left_out == std::vector<std::string>{k});
  CHECK(part.weights->elements == whole.weights->elements - 8 * 16);
  const at::Tensor all = whole.parameter("h.1.attn_qkv.weight"), some = part.parameter("h.1.attn_qkv.weight");
  CHECK(at::equal(all.narrow(0, 0, 16), some.narrow(0, 0, 16)));
  CHECK_FALSE(at::equal(all.narrow(0, 16, 8), some.narrow(0, 16, 8)));
  CHECK(at::equal(all.narrow(0, 24, 8), some.narrow(0, 24, 8)));
  const Answer only = ask("llama-grouped", "{path: " + grouped + ", include: [" + k + "]}", "");
  REQUIRE(only.weights);
  CHECK(only.weights->elements == 8 * 16);
  CHECK(at::equal(all.narrow(0, 16, 8), only.parameter("h.1.attn_qkv.weight").narrow(0, 16, 8)));
}

TEST_CASE("a head that begins at random is warned of, unless it was excluded", "[checkpoint][init_from]") {
  const std::string tied = folder("llama-multi-query-tied");
  const std::string model =
      "{type: llama, n_layer: 2, n_head: 4, n_kv_head: 1, n_embd: 16, mlp_width: 20, "
      "n_positions: 32, vocab_size: 40, tie_embeddings: false}";
  const Answer answer = ask("llama-multi-query-tied", tied, model);
  CHECK(
      answer.messages ==
      "recipe.yaml:1:12: warning: init_from: MODELS/llama-multi-query-tied/model.safetensors has no lm_head.weight: "
      "the model's head begins at random\n"
      "  hint: tie the head to the embedding if the weights were trained so; init_from.exclude: head.weight says that "
      "a new head is meant\n");
  CHECK(answer.weights->left_out == std::vector<std::string>{"head.weight"});
  CHECK(ask("llama-multi-query-tied", "{path: " + tied + ", exclude: head.weight}", model).messages == "");
}

TEST_CASE("the vector of the padding begins as zero", "[checkpoint][init_from]") {
  const auto drawn = tests::experiment_of(recipe_of(folder("llama-pad-token") + "/ids.jsonl", "{}",
                                                    "{type: transformers, config: " + folder("llama-pad-token") + "}"));
  const at::Tensor wte = drawn->model->parameters().front().tensor.detach();
  CHECK(wte.select(0, 3).abs().max().item<float>() == 0);
  CHECK(wte.select(0, 4).abs().max().item<float>() > 0);
}

/// Rows of a vocabulary of 40 in one of `rows`.
void check_rows(const at::Tensor& resized, const at::Tensor& old, std::int64_t rows) {
  const std::int64_t kept = std::min<std::int64_t>(rows, old.size(0));
  REQUIRE(resized.size(0) == rows);
  CHECK(at::equal(resized.narrow(0, 0, kept), old.narrow(0, 0, kept)));
  const at::Tensor mean = old.to(at::kDouble).mean(0);
  for (std::int64_t row = kept; row < rows; ++row) {
    CHECK(at::allclose(resized.select(0, row).to(at::kDouble), mean, 1e-6, 1e-7));
  }
}

TEST_CASE("a vocabulary of another size keeps its rows", "[checkpoint][init_from][resize_vocab]") {
  const auto resized = [](const char* name, std::int64_t rows) {
    return ask(name, "{path: " + folder(name) + ", resize_vocab: true}",
               "{type: transformers, config: " + folder(name) + ", vocab_size: " + std::to_string(rows) + "}");
  };
  for (const char* name : {"llama-grouped", "gpt2-default"}) {  // a head of its own, and a tied one
    CAPTURE(name);
    const Answer old = ask(name, folder(name), "");
    for (const std::int64_t rows : {43, 40}) {
      const Answer answer = resized(name, rows);
      CHECK(answer.messages == "");
      for (const char* of : {"wte.weight", "head.weight"}) {
        if (old.parameter(of).defined()) check_rows(answer.parameter(of), old.parameter(of), rows);
      }
      CHECK(answer.weights->filled == answer.weights->tensors);
      CHECK(contains(answer.weights->text(),
                     "; of a vocabulary of 40 all rows are kept and 3 made, the mean of the "
                     "old") == (rows == 43));
    }
  }
  SECTION("the data say how many, if they have more") {
    const tests::TempDir dir;
    std::ofstream(dir / "ids.jsonl") << "{\"input_ids\": [1, 2, 41, 3]}\n{\"input_ids\": [1, 2, 41, 3]}\n";
    const std::string path = folder("llama-grouped");
    CHECK(ask(recipe_of(dir / "ids.jsonl", "{path: " + path + ", resize_vocab: true}", ""))
              .parameter("head.weight")
              .size(0) == 42);
  }
  SECTION("fewer are the first ones") {
    const tests::TempDir dir;
    std::ofstream(dir / "ids.jsonl") << "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [1, 2, 3]}\n";
    const std::string path = folder("llama-grouped");
    const Answer answer = ask(recipe_of(dir / "ids.jsonl", "{path: " + path + ", resize_vocab: true}",
                                        "{type: transformers, config: " + path + ", vocab_size: 30}"));
    check_rows(answer.parameter("wte.weight"), ask("llama-grouped", path, "").parameter("wte.weight"), 30);
    CHECK(contains(answer.weights->text(), "; of a vocabulary of 40 the first 30 rows are kept, the others left out"));
  }
  SECTION("without the key it is refused, and the key is named") {
    const std::string path = folder("llama-grouped");
    CHECK(ask("llama-grouped", path, "{type: transformers, config: " + path + ", vocab_size: 43}").messages ==
          "recipe.yaml:1:12: error: init_from: of MODELS/llama-grouped/model.safetensors 2 tensors do not fit: "
          "model.embed_tokens.weight is [40, 16] there and [43, 16] in the model, lm_head.weight is [40, 16] there and "
          "[43, 16] in the model\n"
          "  hint: init_from.resize_vocab: true keeps the rows that both have, and begins new ones at the mean of the "
          "old\n");
  }
}

}  // namespace
}  // namespace runner::checkpoint
