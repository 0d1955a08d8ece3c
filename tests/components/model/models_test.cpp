#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "components/loss/loss.h"
#include "components/model/model.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

using components::BatchSpec;
using components::NamedTensor;
using tests::make_model;

namespace {

void seed(std::uint64_t value) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(value);
}

std::string names(const components::model::Model& model) {
  std::string all;
  for (const NamedTensor& parameter : model.parameters()) all += (all.empty() ? "" : " ") + parameter.name;
  return all;
}

std::string messages_of(const std::string& recipe, const BatchSpec& data) {
  const auto node = tests::block("model", recipe);
  runner::core::Diagnostics diagnostics;
  components::part::MetaWeights weights;
  CHECK(components::model::build(node, {data, weights, node, diagnostics}) == nullptr);
  return runner::core::render(diagnostics, {.color = false, .excerpts = false});
}

}  // namespace

TEST_CASE("linear layers start as in torch", "[model][mlp]") {
  // torch.manual_seed(0); torch.nn.Linear(2, 3), as printed by PyTorch.
  seed(0);
  const auto model = make_model("{type: mlp, hidden: []}", tests::value_data(2, 3));
  const auto parameters = model->parameters();
  REQUIRE(names(*model) == "layers.0.weight layers.0.bias");
  CHECK(tests::golden::differences("weight", tests::to_numbers(parameters[0].tensor),
                                   {{-0.0053, 0.3793}, {-0.5820, -0.5204}, {-0.2723, 0.1896}}, {0.0, 5.1e-5}) == "");
  CHECK(tests::golden::differences("bias", tests::to_numbers(parameters[1].tensor), {-0.0140, 0.5607, -0.0628},
                                   {0.0, 5.1e-5}) == "");
}

TEST_CASE("gpt has the parameters of GPT-2", "[model][gpt]") {
  const auto data = tests::text_data(50257, 1024);
  const auto small = make_model("{type: gpt, n_layer: 12, n_head: 12, n_embd: 768}", data, true);
  CHECK(small->parameter_count() == 124439808);  // published for GPT-2 small
  const auto tiny = make_model("{type: gpt, n_layer: 1, n_head: 1, n_embd: 8}", data, true);
  CHECK(
      names(*tiny) ==
      "wte.weight wpe.weight h.0.ln_1.weight h.0.ln_1.bias h.0.attn_qkv.weight h.0.attn_qkv.bias h.0.attn_proj.weight "
      "h.0.attn_proj.bias h.0.ln_2.weight h.0.ln_2.bias h.0.mlp_fc.weight h.0.mlp_fc.bias h.0.mlp_proj.weight "
      "h.0.mlp_proj.bias ln_f.weight ln_f.bias");
  REQUIRE(tiny->ties().size() == 1);
  CHECK(tiny->ties()[0].name == "head.weight");
  CHECK(tiny->ties()[0].owner == "wte.weight");
  const auto bare = make_model(
      "{type: gpt, n_layer: 1, n_head: 1, n_embd: 8, bias: false, tie_embeddings: false, "
      "positions: rotary}",
      data, true);
  CHECK(names(*bare) ==
        "wte.weight h.0.ln_1.weight h.0.attn_qkv.weight h.0.attn_proj.weight h.0.ln_2.weight h.0.mlp_fc.weight "
        "h.0.mlp_proj.weight ln_f.weight head.weight");
  CHECK(bare->ties().empty());
}

TEST_CASE("a model on the meta device takes no memory and draws nothing", "[model]") {
  seed(7);
  const at::Tensor expected = at::randint(1000, {4});
  seed(7);
  const auto gpt = make_model("{type: gpt, positions: rotary}", tests::text_data(256, 1 << 20), true);
  const auto mlp = make_model("{type: mlp, hidden: [1000000, 1000000]}", tests::class_data(4, 3), true);
  for (const NamedTensor& parameter : mlp->parameters()) CHECK(parameter.tensor.is_meta());
  for (const NamedTensor& parameter : gpt->parameters()) CHECK(parameter.tensor.is_meta());
  CHECK(at::randint(1000, {4}).equal(expected));
}

TEST_CASE("gpt starts as GPT-2 does", "[model][gpt]") {
  seed(1);
  const auto model = make_model("{type: gpt, n_layer: 8, n_head: 2, n_embd: 64}", tests::text_data(256, 64));
  for (const NamedTensor& parameter : model->parameters()) {
    INFO(parameter.name);
    if (parameter.name.ends_with("bias"))
      CHECK(parameter.tensor.eq(0).all().item<bool>());
    else if (parameter.tensor.dim() == 1)
      CHECK(parameter.tensor.eq(1).all().item<bool>());
    // 0.02, and 0.02 / sqrt(2 * 8) for the last projection of each residual branch
    else if (parameter.name.ends_with("proj.weight"))
      CHECK(parameter.tensor.std().item<double>() == Approx(0.005).epsilon(0.1));
    else
      CHECK(parameter.tensor.std().item<double>() == Approx(0.02).epsilon(0.1));
  }
}

TEST_CASE("a position sees only those before it", "[model][gpt]") {
  for (const char* positions : {"learned", "rotary"}) {
    seed(2);
    const auto model =
        make_model(std::string("{type: gpt, n_layer: 2, n_head: 2, n_embd: 16, positions: ") + positions + "}",
                   tests::text_data(11, 8));
    const at::Tensor x = at::randint(11, {2, 8}, at::kLong);
    at::Tensor changed = x.clone();
    changed.narrow(1, 5, 3).add_(1).remainder_(11);
    const at::Tensor a = tests::forward(*model, x), b = tests::forward(*model, changed);
    CHECK(a.narrow(1, 0, 5).allclose(b.narrow(1, 0, 5), 1e-5, 1e-6));
    CHECK_FALSE(a.narrow(1, 5, 1).allclose(b.narrow(1, 5, 1), 1e-5, 1e-6));
    // and a shorter sequence is the beginning of a longer one
    CHECK(tests::forward(*model, x.narrow(1, 0, 3)).allclose(a.narrow(1, 0, 3), 1e-5, 1e-6));
  }
}

TEST_CASE("dropout acts while training only", "[model]") {
  struct Case {
    const char* recipe;
    BatchSpec data;
    at::Tensor input;
  };
  const Case cases[] = {
      {"{type: gpt, n_layer: 1, n_head: 2, n_embd: 16, dropout: 0.5}", tests::text_data(11, 8),
       at::ones({2, 8}, at::kLong)},
      {"{type: mlp, hidden: [64], dropout: 0.5}", tests::class_data(4, 3), at::ones({2, 4})},
      {"{type: sequential, layers: [{type: linear, out_features: 64}, {type: dropout}]}", tests::class_data(4, 64),
       at::ones({2, 4})},
  };
  for (const Case& c : cases) {
    INFO(c.recipe);
    const auto model = make_model(c.recipe, c.data);
    CHECK_FALSE(tests::forward(*model, c.input).equal(tests::forward(*model, c.input)));
    model->set_training(false);
    CHECK(tests::forward(*model, c.input).equal(tests::forward(*model, c.input)));
  }
}

TEST_CASE("gpt runs under bfloat16 autocast near its float32 result", "[model][gpt]") {
  for (const char* positions : {"learned", "rotary"}) {
    seed(3);
    const auto data = tests::text_data(64, 16);
    const auto model =
        make_model(std::string("{type: gpt, n_layer: 2, n_head: 2, n_embd: 32, positions: ") + positions + "}", data);
    const at::Tensor x = at::randint(64, {2, 16}, at::kLong), y = at::randint(64, {2, 16}, at::kLong);
    const auto node = tests::block("loss", "cross_entropy");
    runner::core::Diagnostics diagnostics;
    const auto loss = components::loss::build(node, {model->outputs(), data, node, diagnostics});
    const double full = loss->sum(tests::judged(tests::forward(*model, x), y)).item<double>();
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    const at::Tensor half = loss->sum(tests::judged(tests::forward(*model, x), y));
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    CHECK(half.scalar_type() == at::kFloat);
    CHECK(half.item<double>() == Approx(full).epsilon(1e-2));
    half.backward();
    for (const NamedTensor& parameter : model->parameters()) {
      INFO(parameter.name);
      REQUIRE(parameter.tensor.grad().defined());
      CHECK(parameter.tensor.grad().scalar_type() == at::kFloat);
    }
  }
}

TEST_CASE("hooks stand around every block, the last added innermost", "[model]") {
  const auto model = make_model("{type: mlp, hidden: [2]}", tests::class_data(4, 3));
  std::string seen;
  for (const char* who : {"a", "b"}) {
    model->add_hooks({[&seen, who](const auto& block, auto&) { seen += std::string(who) + "+" + block.name() + " "; },
                      [&seen, who](const auto& block, auto&) { seen += std::string(who) + "-" + block.name() + " "; }});
  }
  tests::forward(*model, at::zeros({1, 4}));
  CHECK(seen == "a+layers.0 b+layers.0 b-layers.0 a-layers.0 a+layers.1 b+layers.1 b-layers.1 a-layers.1 ");
}

TEST_CASE("noise is added to the vectors of ids while training, and bounded", "[model]") {
  const auto model = make_model("{type: gpt, n_layer: 1, n_head: 2, n_embd: 8}", tests::text_data(16, 4));
  REQUIRE(components::model::add_embedding_noise(*model, 5));
  at::Tensor seen;
  model->add_hooks({[&seen](const auto& block, const components::TensorMap& activations) {
                      if (block.name() == "h.0") seen = activations.at("x");
                    },
                    {}});
  const at::Tensor ids = at::ones({3, 4}, at::kLong);
  const auto vectors = [&](bool training) {
    model->set_training(training);
    tests::forward(*model, ids);
    return seen.detach().clone();
  };
  const at::Tensor plain = vectors(false), noisy = vectors(true);
  CHECK(at::equal(vectors(false), plain));
  CHECK_FALSE(at::equal(vectors(true), noisy));
  const double most = 5 / std::sqrt(4.0 * 8.0), largest = (noisy - plain).abs().max().item().toDouble();
  CHECK(largest < most);
  CHECK(largest > 0.8 * most);  // of 96 numbers
  CHECK_FALSE(
      components::model::add_embedding_noise(*make_model("{type: mlp, hidden: [2]}", tests::class_data(4, 3)), 5));
}

TEST_CASE("blocks count their matrix products", "[model]") {
  CHECK(make_model("{type: mlp, hidden: [64]}", tests::value_data(32, 1), true)->forward_flops(1) ==
        2.0 * (32 * 64 + 64));
  // 12 C^2 for the projections, the causal half of scores and values, and the head
  CHECK(make_model("{type: gpt, n_layer: 2, n_head: 2, n_embd: 32}", tests::text_data(100, 16), true)
            ->forward_flops(16) == 2.0 * (2.0 * 16 * 12 * 32 * 32 + 4.0 * 32 * 16 * 17 / 2) + 2.0 * 16 * 32 * 100);
  CHECK(make_model("{type: sequential, layers: [{type: embedding, embedding_dim: 8}, {type: linear, out_features: 4}]}",
                   tests::text_data(4, 16), true)
            ->forward_flops(16) == 2.0 * 16 * 8 * 4);
}

TEST_CASE("a model that does not fit the data says what is there", "[model]") {
  struct Case {
    const char* name;
    const char* recipe;
    BatchSpec data;
    const char* message;
  };
  BatchSpec endless = tests::text_data(256, 0), images = tests::class_data(4, 3);
  images.find(components::kInput)->shape = {components::kBatch, 28, 28};
  const Case cases[] = {
      {"mlp on ids", "{type: mlp, hidden: [8], out_features: 2}", tests::text_data(256, 8),
       "model.yaml:1:1: error: mlp reads features, float32 [batch, n], but the data is int64 [batch, time]\n"
       "  hint: for ids use a model such as gpt, or sequential with an embedding\n"},
      {"mlp on images", "{type: mlp, hidden: [8]}", images,
       "model.yaml:1:1: error: mlp reads features, float32 [batch, n], but the data is float32 [batch, 28, 28]\n"
       "  hint: use sequential with a flatten layer\n"},
      {"gpt on features", "{type: gpt}", tests::class_data(4, 3),
       "model.yaml:1:1: error: gpt reads ids, int64 [batch, time], but the data is float32 [batch, 4]\n"
       "  hint: use data of text, or a model for features such as mlp\n"},
      {"a small vocabulary and few positions", "{type: gpt, vocab_size: 100, n_positions: 64}",
       tests::text_data(256, 128),
       "model.yaml:1:25: error: vocab_size is 100, but the data has 256 distinct ids\n"
       "  hint: set vocab_size to 256 or leave it out\n"
       "model.yaml:1:43: error: n_positions is 64, but the data has sequences of max_seq_len 128\n"
       "  hint: set n_positions to 128 or leave it out\n"},
      {"no length", "{type: gpt}", endless,
       "model.yaml:1:1: error: gpt cannot derive n_positions from this data\n  hint: set n_positions\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(messages_of(c.recipe, c.data) == c.message); }
  }
}
