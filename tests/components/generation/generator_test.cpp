// Generation with a cache: the numbers of a forward pass, and the same bits in any batch and behind any prefix.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "components/generation/generator.h"
#include "components/generation/passes.h"
#include "components/ops/kernel_policy.h"
#include "components/tensor/device.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::AutocastOptions;
using components::generation::End;
using components::generation::Feed;
using components::generation::Options;
using components::generation::Passes;
using Ids = std::vector<std::int32_t>;
using Model = components::model::Model;

constexpr std::int64_t kVocabulary = 97, kPositions = 96;

constexpr const char* kModels[] = {
    "{type: gpt, n_layer: 2, n_head: 2, n_embd: 32}",
    "{type: gpt, n_layer: 2, n_head: 4, n_embd: 64, positions: rotary}",
    "{type: llama, n_layer: 2, n_head: 6, n_kv_head: 2, n_embd: 48, mlp_width: 70}",
    "{type: llama, n_layer: 2, n_head: 4, n_kv_head: 1, n_embd: 40, attention_bias: all, mlp_bias: true, "
    "sliding_window: 7, tie_embeddings: false}",
    "{type: llama, n_layer: 1, n_head: 2, n_embd: 32, n_positions: 96, rope_scaling: {rope_type: dynamic, factor: 4, "
    "original_max_position_embeddings: 16}}",
    "{type: transformers, config: {model_type: qwen3, hidden_size: 32, intermediate_size: 40, num_hidden_layers: 2, "
    "num_attention_heads: 4, num_key_value_heads: 2, head_dim: 12, attention_bias: true, vocab_size: 97}}",
    "{type: transformers, config: {model_type: olmo2, hidden_size: 32, intermediate_size: 40, num_hidden_layers: 2, "
    "num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 97}}",
    "{type: transformers, config: {model_type: granite, hidden_size: 32, intermediate_size: 40, num_hidden_layers: 2, "
    "num_attention_heads: 4, mlp_bias: true, embedding_multiplier: 3, residual_multiplier: 0.4, logits_scaling: 2, "
    "attention_multiplier: 0.2, vocab_size: 97}}",
    "{type: transformers, config: {model_type: smollm3, hidden_size: 32, intermediate_size: 40, num_hidden_layers: 3, "
    "num_attention_heads: 4, num_key_value_heads: 2, no_rope_layer_interval: 2, vocab_size: 97, pad_token_id: null}}",
    "{type: transformers, config: {model_type: phi3, hidden_size: 32, intermediate_size: 40, num_hidden_layers: 2, "
    "num_attention_heads: 4, partial_rotary_factor: 0.5, sliding_window: 9, vocab_size: 97, pad_token_id: null}}",
    "{type: transformers, config: {model_type: gemma2, hidden_size: 32, intermediate_size: 40, num_hidden_layers: 2, "
    "num_attention_heads: 4, num_key_value_heads: 2, head_dim: 12, query_pre_attn_scalar: 5, sliding_window: 9, "
    "attn_logit_softcapping: 2.0, final_logit_softcapping: 3.0, vocab_size: 97}}",
    "{type: transformers, config: {model_type: gemma3_text, hidden_size: 32, intermediate_size: 40, "
    "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 12, sliding_window: 9, "
    "sliding_window_pattern: 2, vocab_size: 97}}",
    "{type: transformers, config: {model_type: mixtral, hidden_size: 32, intermediate_size: 40, num_hidden_layers: 2, "
    "num_attention_heads: 4, num_key_value_heads: 2, num_local_experts: 4, sliding_window: 9, vocab_size: 97}}",
    "{type: transformers, config: {model_type: qwen3_moe, hidden_size: 32, intermediate_size: 40, "
    "moe_intermediate_size: 24, num_hidden_layers: 3, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 12, "
    "num_experts: 6, num_experts_per_tok: 3, decoder_sparse_step: 2, vocab_size: 97}}",
};

std::shared_ptr<Model> make(const char* text) {
  components::BatchSpec data;
  data.tensors = {{components::kInput, components::Dtype::kInt64, {components::kBatch, components::kTime}, false}};
  data.tensors[0].vocab_size = kVocabulary;
  data.tensors[0].max_length = kPositions;
  at::manual_seed(5);
  auto model = tests::make_model(text, data, false);
  const at::NoGradGuard no_grad;
  // Larger ones than at the start of a training: logits that differ.
  for (const auto& parameter : model->parameters()) {
    if (parameter.tensor.dim() > 1) parameter.tensor.mul_(6);
  }
  model->set_training(false);
  return model;
}

Ids draw(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Ids ids(count);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % kVocabulary);
  return ids;
}

Ids joined(Ids first, const Ids& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

AutocastOptions in(AutocastOptions::Type type) {
  AutocastOptions options;
  options.type = type;
  return options;
}

at::Tensor forward(const Model& model, const Ids& ids) {
  const at::NoGradGuard no_grad;
  components::TensorMap activations;
  activations.set(components::kInput, at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())).unsqueeze(0));
  model.forward(activations);
  return activations.at(components::kOutput).select(1, -1).to(at::kFloat);
}

/// The logits behind `ids`, given in pieces that end at `cuts`.
at::Tensor behind(Passes& passes, std::int64_t slot, const Ids& ids, std::vector<std::size_t> cuts = {}) {
  const at::NoGradGuard no_grad;
  cuts.push_back(ids.size());
  std::int64_t first = 0;
  at::Tensor logits;
  for (const std::size_t cut : cuts) {
    const Feed feed{slot, first, std::span(ids).first(cut)};
    logits = passes.run(std::span(&feed, 1));
    first = static_cast<std::int64_t>(cut);
  }
  return logits;
}

/// Whether keys depend on the length of the text at which they were computed.
bool grows(const std::string& model) { return model.find("dynamic") != std::string::npos; }

struct Texts final : components::generation::Receiver {
  bool token(std::size_t sequence, std::int32_t id, float log_probability) override {
    tokens[sequence].push_back(id);
    log_probabilities.push_back(log_probability);
    return id != stop;
  }
  void ended(std::size_t sequence, End how) override { ends[sequence] = how; }

  std::map<std::size_t, Ids> tokens;
  std::map<std::size_t, End> ends;
  std::vector<float> log_probabilities;
  std::int32_t stop = -1;
};

Texts generated(const Model& model, const std::vector<Ids>& prompts, const Options& options) {
  Texts texts;
  components::generation::Generator(model, options).generate(prompts, texts);
  return texts;
}

/// The largest logit after each forward pass over the whole text.
Ids greedy(const Model& model, Ids text, std::size_t count) {
  Ids made;
  while (made.size() < count) {
    const auto next = static_cast<std::int32_t>(forward(model, text).argmax(1).item<std::int64_t>());
    made.push_back(next);
    text.push_back(next);
  }
  return made;
}

/// The plain operations while it lives.
struct Plain {
  Plain() { components::set_fused_kernels(false); }
  ~Plain() { components::set_fused_kernels(true); }
};

}  // namespace

TEST_CASE("logits with a cache are those of a forward pass", "[generation]") {
  for (const char* text : kModels) {
    INFO(text);
    const auto model = make(text);
    REQUIRE(components::generation::has_cache(*model));
    for (const std::size_t length : {1U, 2U, 15U, 40U, 80U}) {
      const Ids ids = draw(length, 1);
      const at::Tensor expected = forward(*model, ids);
      const double size = expected.abs().max().item<double>();
      const auto passes = components::generation::cached_passes(*model, 2, kPositions, {});
      CHECK((behind(*passes, 1, ids) - expected).abs().max().item<double>() < 1e-5 * size);
      const auto low = components::generation::cached_passes(*model, 2, kPositions, in(AutocastOptions::Type::kBf16));
      CHECK((behind(*low, 0, ids) - expected).abs().max().item<double>() < 0.05 * size);
      const Plain plain;
      const auto plainly = components::generation::cached_passes(*model, 2, kPositions, {});
      const auto cuts = length > 2 && !grows(text) ? std::vector<std::size_t>{length / 2} : std::vector<std::size_t>{};
      CHECK((behind(*plainly, 1, ids, cuts) - expected).abs().max().item<double>() < 1e-5 * size);
    }
  }
}

TEST_CASE("logits have the same bits alone, in a batch, in pieces and behind a shared prefix", "[generation]") {
  for (const char* text : kModels) {
    for (const auto type : {AutocastOptions::Type::kNone, AutocastOptions::Type::kBf16}) {
      INFO(text << " " << static_cast<int>(type));
      const auto model = make(text);
      const Ids prefix = draw(grows(text) ? 9 : 33, 2);
      const Ids ids = joined(prefix, draw(grows(text) ? 6 : 40, 3));
      const auto alone = components::generation::cached_passes(*model, 1, kPositions, in(type));
      const at::Tensor expected = behind(*alone, 0, ids);
      const auto passes = components::generation::cached_passes(*model, 8, kPositions, in(type));
      std::vector<Ids> others;
      std::vector<Feed> feeds;
      for (std::size_t i = 0; i < 8; ++i)
        others.push_back(i == 5 ? ids : draw(11 * i + 1, 7 + static_cast<unsigned>(i)));
      for (std::size_t i = 0; i < 8; ++i) feeds.push_back({static_cast<std::int64_t>(i), 0, others[i]});
      const at::NoGradGuard no_grad;
      CHECK(at::equal(passes->run(feeds)[5], expected[0]));
      CHECK(at::equal(behind(*passes, 2, ids, {1, 3, ids.size() - 2, ids.size() - 1}), expected));
      behind(*passes, 3, joined(prefix, draw(5, 4)));
      passes->copy({3, 0, static_cast<std::int64_t>(prefix.size())}, 6);
      const Feed rest{6, static_cast<std::int64_t>(prefix.size()), ids};
      CHECK(at::equal(passes->run(std::span(&rest, 1)), expected));
    }
  }
}

TEST_CASE("bfloat16 weights are read as they are", "[generation]") {
  const auto model = make(kModels[2]);
  const Ids ids = draw(20, 1);
  const auto mixed = components::generation::cached_passes(*model, 1, kPositions, in(AutocastOptions::Type::kBf16));
  const at::Tensor expected = behind(*mixed, 0, ids);
  {
    const at::NoGradGuard no_grad;
    for (const auto& parameter : model->parameters()) parameter.tensor.set_data(parameter.tensor.to(at::kBFloat16));
  }
  const auto passes = components::generation::cached_passes(*model, 1, kPositions, {});
  const at::Tensor found = behind(*passes, 0, ids);
  CHECK(found.scalar_type() == at::kFloat);
  const double size = expected.abs().max().item<double>();
  CHECK((found - expected).abs().max().item<double>() < 0.05 * size);
}

TEST_CASE("greedy tokens are those of forward passes, in any batch", "[generation]") {
  for (const char* text : {kModels[0], kModels[2]}) {
    const auto model = make(text);
    const Ids shared = draw(20, 9);
    const std::vector<Ids> prompts = {
        draw(3, 1), draw(17, 2), shared, joined(shared, draw(4, 3)), draw(1, 4), joined(shared, draw(2, 5))};
    std::vector<Ids> expected;
    for (const Ids& prompt : prompts) expected.push_back(greedy(*model, prompt, 12));
    for (const std::int64_t batch : {1, 2, 4, 16}) {
      Options options;
      options.max_new_tokens = 12;
      options.batch = batch;
      options.positions = kPositions;
      const Texts texts = generated(*model, prompts, options);
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        CHECK(texts.tokens.at(i) == expected[i]);
        CHECK(texts.ends.at(i) == End::kLength);
      }
    }
  }
}

TEST_CASE("the next turn of a conversation gets the tokens of its whole text", "[generation]") {
  const auto model = make(kModels[3]);
  Options options;
  options.max_new_tokens = 6;
  components::generation::Generator generator(*model, options);
  Ids text = draw(10, 1);
  for (int turn = 0; turn < 4; ++turn) {
    Texts texts;
    const auto times = generator.generate(std::vector<Ids>{text}, texts);
    CHECK(times.prompt_tokens == static_cast<std::int64_t>(text.size()));
    CHECK(texts.tokens.at(0) == greedy(*model, text, 6));
    text = joined(joined(text, texts.tokens.at(0)), draw(3, 2));
  }
}

TEST_CASE("what is drawn depends on the seed and the sequence's number, not on the batch", "[generation]") {
  const auto model = make(kModels[2]);
  const std::vector<Ids> prompts(6, draw(8, 1));
  Options options;
  options.sampling = {.do_sample = true, .temperature = 1.5};
  options.max_new_tokens = 10;
  options.log_probabilities = true;
  const Texts first = generated(*model, prompts, options);
  CHECK(first.tokens.at(0) != first.tokens.at(1));
  CHECK(std::all_of(first.log_probabilities.begin(), first.log_probabilities.end(), [](float x) { return x <= 0; }));
  for (const std::int64_t batch : {1, 3}) {
    options.batch = batch;
    CHECK(generated(*model, prompts, options).tokens == first.tokens);
  }
  Texts third;
  components::generation::Generator(*model, options).generate(std::span(prompts).first(1), third, 2);
  CHECK(third.tokens.at(0) == first.tokens.at(2));
  options.seed = 1;
  CHECK(generated(*model, prompts, options).tokens != first.tokens);
}

TEST_CASE("a text ends with an end token, by its receiver, or with the model's positions", "[generation]") {
  const auto model = make(kModels[0]);
  const Ids prompt = draw(5, 1);
  const Ids all = greedy(*model, prompt, 8);
  const auto place = [&](std::int32_t id) { return std::find(all.begin(), all.end(), id) - all.begin() + 1; };
  Options options;
  options.max_new_tokens = 8;
  options.end_ids = {1000, all[3]};
  const Texts by_token = generated(*model, {prompt}, options);
  CHECK(by_token.ends.at(0) == End::kToken);
  CHECK(by_token.tokens.at(0) == Ids(all.begin(), all.begin() + place(all[3])));
  options.end_ids.clear();
  Texts by_receiver;
  by_receiver.stop = all[2];
  components::generation::Generator(*model, options).generate(std::vector<Ids>{prompt}, by_receiver);
  CHECK(by_receiver.ends.at(0) == End::kReceiver);
  CHECK(by_receiver.tokens.at(0) == Ids(all.begin(), all.begin() + place(all[2])));
  options.positions = 9;
  const Texts by_length = generated(*model, {prompt}, options);
  CHECK(by_length.ends.at(0) == End::kLength);
  CHECK(by_length.tokens.at(0).size() == 4);
  options.slides = true;  // the first tokens are forgotten
  CHECK(generated(*model, {prompt}, options).tokens.at(0).size() == 8);
}

TEST_CASE("logits that are no numbers end a text", "[generation]") {
  const auto model = make(kModels[0]);
  {
    const at::NoGradGuard no_grad;
    model->parameters().back().tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  const Texts texts = generated(*model, {draw(3, 1)}, {});
  CHECK(texts.ends.at(0) == End::kNotFinite);
  CHECK(texts.tokens.empty());
}

TEST_CASE("another device gives the CPU's tokens", "[.][accelerator]") {
  tests::accelerator::install();
  for (const char* text : {kModels[0], kModels[2], kModels[3]}) {
    INFO(text);
    const auto model = make(text);
    const std::vector<Ids> prompts = {draw(3, 1), draw(17, 2), draw(9, 3)};
    Options options;
    options.max_new_tokens = 6;
    const Texts expected = generated(*model, prompts, options);
    const c10::Device device(tests::device_training::kFirst);
    for (const auto& tensors : {model->parameters(), model->buffers(), model->constants()}) {
      components::move_to(tensors, device);
    }
    CHECK(generated(*model, prompts, options).tokens == expected.tokens);
  }
}
