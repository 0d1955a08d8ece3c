// Adapters on the ways that a layer is computed: fused, by plain operations, recomputed, and with a cache.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/adapter/adapter.h"
#include "components/generation/passes.h"
#include "components/loss/loss.h"
#include "components/model/model.h"
#include "components/ops/kernel_policy.h"
#include "components/part/linear.h"
#include "components/part/linear_term.h"
#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::NamedTensor;
using components::TensorMap;
using components::model::Model;
using runner::core::Diagnostics;

constexpr std::int64_t kVocabulary = 37, kPositions = 24;
constexpr const char* kGpt = "{type: gpt, n_layer: 2, n_head: 2, n_embd: 32}";
constexpr const char* kLlama =
    "{type: llama, n_layer: 2, n_head: 4, n_kv_head: 2, n_embd: 48, mlp_width: 70, attention_bias: qkv}";
constexpr const char* kEverywhere = "{type: lora, r: 5, target_modules: all-linear, init_lora_weights: false}";
constexpr const char* kDropping =
    "{type: lora, r: 5, target_modules: all-linear, init_lora_weights: false, lora_dropout: 0.25}";
constexpr const char* kDora =
    "{type: lora, r: 5, target_modules: all-linear, init_lora_weights: false, use_dora: true}";
constexpr const char* kDroppingDora =
    "{type: lora, r: 5, target_modules: all-linear, init_lora_weights: false, use_dora: true, lora_dropout: 0.25}";

/// The plain operations while it lives.
struct Plain {
  explicit Plain(bool plain = true) { components::set_fused_kernels(!plain); }
  ~Plain() { components::set_fused_kernels(true); }
};

/// A processor that has units for bfloat16.
struct Bf16Units {
  Bf16Units() { components::pretend_bf16_units(true); }
  ~Bf16Units() { components::pretend_bf16_units(std::nullopt); }
};

struct Adapted {
  std::shared_ptr<Model> model;
  std::shared_ptr<components::adapter::Adapter> adapter;
  std::string messages;
  int errors = 0;

  Adapted(const char* of_model, const std::string& of_adapter) {
    at::manual_seed(3);
    model = tests::make_model(of_model, tests::text_data(kVocabulary, kPositions));
    add(of_model, of_adapter);
  }

  /// One more, beside those before.
  void add(const char* of_model, const std::string& of_adapter) {
    const auto model_block = tests::block("model", of_model), block = tests::block("adapter", of_adapter);
    components::part::DrawnWeights weights;
    Diagnostics diagnostics;
    adapter = components::adapter::build(block, {*model, model_block, weights, block, diagnostics});
    messages = runner::core::render(diagnostics);
    errors = diagnostics.error_count();
    if (adapter != nullptr) move_magnitudes();
  }

  /// Away from the norms that they begin with.
  void move_magnitudes() const {
    adapter->begin();
    const at::NoGradGuard no_grad;
    for (const NamedTensor& parameter : model->parameters()) {
      if (parameter.name.ends_with("magnitude_vector"))
        parameter.tensor.mul_(at::linspace(0.7, 1.4, parameter.tensor.numel()));
    }
  }

  at::Tensor parameter(const std::string& name) const {
    for (const NamedTensor& parameter : model->parameters()) {
      if (parameter.name == name) return parameter.tensor;
    }
    FAIL("no parameter is called " << name);
    return {};
  }
};

/// The loss of one batch, after its backward pass.
double pass(const Model& model, bool bf16 = false) {
  using components::AutocastOptions;
  const Bf16Units units;
  at::manual_seed(7);
  const at::Tensor x = at::randint(kVocabulary, {3, kPositions}, at::kLong);
  const auto node = tests::block("loss", "cross_entropy");
  Diagnostics diagnostics;
  const auto loss =
      components::loss::build(node, {model.outputs(), tests::text_data(kVocabulary, kPositions), node, diagnostics});
  tests::clear_gradients(model);
  at::Tensor sum;
  {
    const components::Autocast autocast({.type = bf16 ? AutocastOptions::Type::kBf16 : AutocastOptions::Type::kNone});
    TensorMap tensors;
    tensors.set(components::kInput, x);
    model.forward_for_loss(tensors);
    tensors.set(components::kTarget, x.roll(-1, 1));
    sum = loss->sum(tensors, 1.0);
  }
  sum.backward();
  return sum.item<double>();
}

std::vector<at::Tensor> gradients(const Model& model) {
  std::vector<at::Tensor> found;
  for (const NamedTensor& parameter : model.trained_parameters()) found.push_back(parameter.tensor.grad().clone());
  return found;
}

void check_close(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected, double bound) {
  REQUIRE(found.size() == expected.size());
  REQUIRE_FALSE(found.empty());
  double all = 0;
  for (const at::Tensor& gradient : expected) all = std::max(all, gradient.abs().max().item<double>());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double largest = std::max(expected[i].abs().max().item<double>(), 1e-2 * all);
    CHECK((found[i] - expected[i]).abs().max().item<double>() <= bound * largest);
  }
}

/// Adds to a layer's rows of the weight that it is joined in: `h.0.attn_qkv.v_proj` of the llama above.
void add_to_layer(const Model& model, const std::string& layer, const at::Tensor& product) {
  const std::int64_t rows_of_q = 48, rows_of_k = 24, rows_of_gate = 70;
  std::int64_t first = 0;
  if (layer.ends_with(".k_proj")) first = rows_of_q;
  if (layer.ends_with(".v_proj")) first = rows_of_q + rows_of_k;
  if (layer.ends_with(".up_proj")) first = rows_of_gate;
  const bool joined = layer.ends_with("_proj") && !layer.ends_with(".attn_proj") && !layer.ends_with(".mlp_proj");
  const std::string weight = (joined ? layer.substr(0, layer.rfind('.')) : layer) + ".weight";
  for (const NamedTensor& parameter : model.parameters()) {
    if (parameter.name == weight) parameter.tensor.narrow(0, first, product.size(0)).add_(product);
  }
}

}  // namespace

TEST_CASE("adapters are drawn after the model, and only they are trained", "[adapter]") {
  const Adapted adapted(kLlama, "{type: lora, r: 4}"), again(kLlama, "{type: lora, r: 4, init_lora_weights: false}");
  at::manual_seed(3);
  const auto base = tests::make_model(kLlama, tests::text_data(kVocabulary, kPositions));
  REQUIRE(adapted.adapter != nullptr);
  for (const NamedTensor& parameter : base->parameters()) {
    CHECK(at::equal(adapted.parameter(parameter.name), parameter.tensor));
    CHECK_FALSE(adapted.parameter(parameter.name).requires_grad());
  }
  std::vector<std::string> trained;
  for (const NamedTensor& parameter : adapted.model->trained_parameters()) trained.push_back(parameter.name);
  CHECK(trained == std::vector<std::string>{"h.0.attn_qkv.q_proj.lora_A.weight", "h.0.attn_qkv.q_proj.lora_B.weight",
                                            "h.0.attn_qkv.v_proj.lora_A.weight", "h.0.attn_qkv.v_proj.lora_B.weight",
                                            "h.1.attn_qkv.q_proj.lora_A.weight", "h.1.attn_qkv.q_proj.lora_B.weight",
                                            "h.1.attn_qkv.v_proj.lora_A.weight", "h.1.attn_qkv.v_proj.lora_B.weight"});
  // A is uniform within 1 / sqrt(48), as torch.nn.Linear begins; B is zero, or within 1 / sqrt(4).
  const at::Tensor a = adapted.parameter(trained[0]), b = adapted.parameter(trained[1]);
  CHECK(a.abs().max().item<double>() <= 1 / std::sqrt(48.0));
  CHECK(a.abs().max().item<double>() >= 0.9 / std::sqrt(48.0));
  CHECK(b.abs().max().item<double>() == 0.0);
  CHECK(again.parameter(trained[1]).abs().max().item<double>() >= 0.4);
  CHECK(at::equal(again.parameter(trained[0]), a));
  REQUIRE(adapted.adapter->layers().size() == 4);
  CHECK(adapted.adapter->layers()[3].name == "h.1.attn_qkv.v_proj");
  CHECK(adapted.adapter->layers()[3].module == "model.layers.1.self_attn.v_proj");
  CHECK(adapted.adapter->layers()[3].scale == 2.0);
}

TEST_CASE("fused and plain operations give the gradients of adapters", "[adapter][fused]") {
  for (const char* model : {kGpt, kLlama}) {
    for (const char* adapter : {kEverywhere, kDropping, kDora, kDroppingDora}) {
      for (const char* more : {"", ", bias: all"}) {
        DYNAMIC_SECTION(model << adapter << more) {
          const std::string text = adapter;
          const Adapted adapted(model, text.substr(0, text.size() - 1) + more + "}");
          const double fused = pass(*adapted.model), low = pass(*adapted.model, true);
          const auto of_low = gradients(*adapted.model);
          pass(*adapted.model);
          const auto of_fused = gradients(*adapted.model);
          const Plain plain;
          CHECK(pass(*adapted.model) == Approx(fused).epsilon(1e-5));
          CHECK(low == Approx(fused).epsilon(1e-2));
          check_close(of_fused, gradients(*adapted.model), 1e-4);
          // DoRA rounds what it multiplies, and the product, once more.
          check_close(of_low, gradients(*adapted.model), text.find("use_dora") == text.npos ? 0.1 : 0.15);
        }
      }
    }
  }
}

TEST_CASE("recomputed blocks have the same adapters and dropout to the last bit", "[adapter]") {
  for (const bool plain : {false, true}) {
    for (const char* adapter : {kDropping, kDora, kDroppingDora}) {
      const bool save_matmuls = GENERATE(false, true);
      DYNAMIC_SECTION(adapter << (plain ? ", plain" : ", fused") << (save_matmuls ? ", products kept" : "")) {
        const Plain as_asked(plain);
        const Adapted adapted(kLlama, adapter);
        const double loss = pass(*adapted.model);
        const auto expected = gradients(*adapted.model);
        adapted.model->set_recomputed({{1, 2, save_matmuls}});
        CHECK(pass(*adapted.model) == loss);
        const auto found = gradients(*adapted.model);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i], expected[i]));
      }
    }
  }
}

TEST_CASE("generation with a cache computes adapters, each row by itself", "[adapter][generation]") {
  using components::generation::Feed;
  for (const char* model : {kGpt, kLlama}) {
    for (const char* adapter : {kDropping, kDora}) {
      const bool bf16 = GENERATE(false, true);
      DYNAMIC_SECTION(model << adapter << (bf16 ? ", bfloat16" : "")) {
        Adapted adapted(model, adapter);
        adapted.model->set_training(false);
        components::AutocastOptions autocast;
        if (bf16) autocast.type = components::AutocastOptions::Type::kBf16;
        const std::vector<std::int32_t> one = {5, 1, 30, 7, 7, 2}, two = {9, 8};
        const auto passes = components::generation::cached_passes(*adapted.model, 2, kPositions, autocast);
        const std::vector<Feed> alone = {{0, 0, one}}, both = {{1, 0, two}, {0, 0, one}};
        const at::Tensor by_itself = passes->run(alone).clone();
        CHECK(at::equal(passes->run(both)[1], by_itself[0]));
        const at::NoGradGuard no_grad;
        TensorMap tensors;
        tensors.set(components::kInput, at::tensor(std::vector<std::int64_t>(one.begin(), one.end())).unsqueeze(0));
        adapted.model->forward(tensors);
        const at::Tensor expected = tensors.at(components::kOutput).select(1, -1)[0];
        const double bound = (bf16 ? 0.05 : 1e-5) * expected.abs().max().item<double>();
        CHECK((by_itself[0] - expected).abs().max().item<double>() <= bound);
      }
    }
  }
}

TEST_CASE("DoRA begins as the model is, and its magnitude is the norm of what it multiplies", "[adapter]") {
  at::manual_seed(3);
  const auto base = tests::make_model(kLlama, tests::text_data(kVocabulary, kPositions));
  const Adapted adapted(kLlama, "{type: lora, r: 4, target_modules: [k_proj, down_proj], use_dora: true}");
  const at::NoGradGuard no_grad;
  const std::string name = "h.1.attn_qkv.k_proj";
  const at::Tensor magnitude = adapted.parameter(name + ".lora_magnitude_vector");
  const at::Tensor rows = adapted.parameter("h.1.attn_qkv.weight").narrow(0, 48, 24);  // behind those of q
  CHECK(at::allclose(magnitude, at::linalg_vector_norm(rows, 2.0, at::IntArrayRef{1}) * at::linspace(0.7, 1.4, 24)));
  adapted.adapter->begin();  // one that is set stays
  CHECK_FALSE(at::allclose(magnitude, at::linalg_vector_norm(rows, 2.0, at::IntArrayRef{1})));
  for (const NamedTensor& parameter : adapted.model->parameters()) {
    if (parameter.name.ends_with("magnitude_vector")) parameter.tensor.zero_();
  }
  adapted.adapter->begin();
  TensorMap one, other;
  for (TensorMap* tensors : {&one, &other}) {
    at::manual_seed(7);
    tensors->set(components::kInput, at::randint(kVocabulary, {3, kPositions}, at::kLong));
  }
  base->forward(one);
  adapted.model->forward(other);
  CHECK(at::allclose(one.at(components::kOutput), other.at(components::kOutput), 1e-5, 1e-6));
}

TEST_CASE("adapters beside each other add up, and one that is not trained has no gradients", "[adapter]") {
  const std::string second =
      "{type: lora, name: style, r: 3, target_modules: [v_proj, up_proj], "
      "init_lora_weights: false, lora_alpha: 5";
  const Adapted one(kLlama, kEverywhere);
  const auto several = [&](const char* rest) {
    Adapted made(kLlama, kEverywhere);
    made.add(kLlama, second + rest);
    return made;
  };
  const Adapted both = several("}"), beside = several(", trained: false}");
  const double loss = pass(*both.model);
  const auto all = gradients(*both.model);
  CHECK(loss != pass(*one.model));
  CHECK(loss == pass(*beside.model));
  for (const NamedTensor& parameter : beside.model->parameters()) {
    INFO(parameter.name);
    const bool is_second = parameter.name.find(".style.") != std::string::npos;
    CHECK(parameter.tensor.requires_grad() == (parameter.name.find(".lora_") != std::string::npos && !is_second));
    CHECK(parameter.tensor.grad().defined() == parameter.tensor.requires_grad());
    if (!parameter.tensor.requires_grad()) continue;
    CHECK(at::equal(parameter.tensor.grad(), both.parameter(parameter.name).grad()));
  }
  CHECK(all.size() == gradients(*beside.model).size() + 8);  // A and B of two layers in two blocks
  {
    const Plain operations;
    CHECK(pass(*both.model) == Approx(loss).epsilon(1e-5));
    check_close(gradients(*both.model), all, 1e-4);
  }
  // The weights of the layers with both products added to them.
  const at::NoGradGuard no_grad;
  at::manual_seed(3);
  const auto merged = tests::make_model(kLlama, tests::text_data(kVocabulary, kPositions));
  for (const NamedTensor& parameter : both.model->parameters()) {
    const std::size_t at = parameter.name.find(".lora_A.");
    if (at == std::string::npos) continue;
    const std::string layer = parameter.name.substr(0, at), end = parameter.name.substr(at + 8);
    const double scale = end == "weight" ? 8.0 / 5 : 5.0 / 3;
    const at::Tensor b = both.parameter(layer + ".lora_B." + end);
    add_to_layer(*merged, layer, at::matmul(b, parameter.tensor) * scale);
  }
  TensorMap wanted, found;
  for (TensorMap* tensors : {&wanted, &found}) {
    at::manual_seed(7);
    tensors->set(components::kInput, at::randint(kVocabulary, {3, kPositions}, at::kLong));
  }
  merged->forward(wanted);
  both.model->forward(found);
  CHECK(at::allclose(found.at(components::kOutput), wanted.at(components::kOutput), 1e-4, 1e-5));
}

TEST_CASE("without its terms a model computes what it did before the adapter", "[adapter]") {
  for (const char* of_model : {kGpt, kLlama}) {
    for (const bool plain : {false, true}) {
      DYNAMIC_SECTION(of_model << (plain ? ", plain" : ", fused")) {
        const Plain operations(plain);
        const Adapted adapted(of_model, kEverywhere);
        at::manual_seed(3);
        const auto base = tests::make_model(of_model, tests::text_data(kVocabulary, kPositions));
        const auto output = [](const Model& model) {
          const at::NoGradGuard no_grad;
          at::manual_seed(7);
          TensorMap tensors;
          tensors.set(components::kInput, at::randint(kVocabulary, {3, kPositions}, at::kLong));
          model.forward(tensors);
          return tensors.at(components::kOutput);
        };
        const at::Tensor with = output(*adapted.model);
        const auto leave_out = [&adapted](bool leave_out) {
          for (const auto& block : adapted.model->blocks()) {
            for (const auto& named : block->linears()) named.linear->leave_out_terms(leave_out);
          }
        };
        const std::size_t parameters = adapted.model->parameters().size();
        leave_out(true);
        CHECK(adapted.model->parameters().size() == parameters);
        CHECK(at::equal(output(*adapted.model), output(*base)));
        CHECK_FALSE(at::equal(with, output(*base)));
        leave_out(false);
        CHECK(at::equal(output(*adapted.model), with));
      }
    }
  }
}

TEST_CASE("layers are named as PEFT does", "[adapter]") {
  struct Case {
    const char* model;
    const char* keys;
    std::vector<std::string> names;
  };
  const Case cases[] = {
      {kGpt, "", {"h.0.attn_qkv", "h.1.attn_qkv"}},
      {kGpt, "target_modules: [c_attn], layers_to_transform: 1", {"h.1.attn_qkv"}},
      {kGpt, "target_modules: [mlp.c_proj]", {"h.0.mlp_proj", "h.1.mlp_proj"}},
      {kGpt, "target_modules: [transformer.h.0.attn.c_proj, h.1.mlp_fc]", {"h.0.attn_proj", "h.1.mlp_fc"}},
      {kLlama, "target_modules: '.*layers[.]1[.].*(q|up)_proj'", {"h.1.attn_qkv.q_proj", "h.1.mlp_fc.up_proj"}},
      {kLlama,
       "target_modules: [attn_qkv], exclude_modules: [k_proj, 1.self_attn.v_proj], layers_to_transform: [0, 1]",
       {"h.0.attn_qkv.q_proj", "h.0.attn_qkv.v_proj", "h.1.attn_qkv.q_proj"}},
      {kLlama,
       "target_modules: ALL-linear, layers_to_transform: [0]",
       {"h.0.attn_qkv.q_proj", "h.0.attn_qkv.k_proj", "h.0.attn_qkv.v_proj", "h.0.attn_proj", "h.0.mlp_fc.gate_proj",
        "h.0.mlp_fc.up_proj", "h.0.mlp_proj"}},
  };
  for (const Case& c : cases) {
    INFO(c.model << " " << c.keys);
    const std::string keys = c.keys;
    const Adapted adapted(c.model, "{type: lora, r: 2" + (keys.empty() ? "" : ", " + keys) + "}");
    INFO(adapted.messages);
    REQUIRE(adapted.adapter != nullptr);
    std::vector<std::string> names;
    for (const auto& layer : adapted.adapter->layers()) names.push_back(layer.name);
    CHECK(names == c.names);
  }
}
