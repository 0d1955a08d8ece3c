// Adapters beside mixtures of experts: attention and routers have them, experts do not.

#include <ATen/core/grad_mode.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "components/adapter/adapter.h"
#include "components/model/model.h"
#include "components/part/weight.h"
#include "components/tensor/tensors.h"
#include "runner/core/diagnostics.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

constexpr const char* kMixtral =
    "{type: transformers, config: {model_type: mixtral, vocab_size: 37, hidden_size: 16, intermediate_size: 12, "
    "num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 1, num_local_experts: 4}}";
constexpr const char* kQwen =
    "{type: transformers, config: {model_type: qwen3_moe, vocab_size: 37, hidden_size: 16, intermediate_size: 12, "
    "moe_intermediate_size: 8, num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 1, num_experts: 4, "
    "num_experts_per_tok: 2, decoder_sparse_step: 2}}";

struct Answer {
  std::vector<std::string> layers;
  std::string messages;
};

Answer ask(const char* of_model, const std::string& keys) {
  const auto model = tests::make_model(of_model, tests::text_data(37, 8));
  const auto model_block = tests::block("model", of_model);
  const auto block = tests::block("adapter", "{type: lora, r: 2" + (keys.empty() ? "" : ", " + keys) + "}");
  components::part::DrawnWeights weights;
  runner::core::Diagnostics diagnostics;
  const auto adapter = components::adapter::build(block, {*model, model_block, weights, block, diagnostics});
  Answer answer;
  runner::core::RenderOptions options;
  options.excerpts = false;
  answer.messages = runner::core::render(diagnostics, options);
  answer.messages.erase(0, answer.messages.find("error: "));
  if (adapter == nullptr) return answer;
  for (const auto& layer : adapter->layers()) answer.layers.push_back(layer.name + " " + layer.module);
  return answer;
}

}  // namespace

TEST_CASE("attention and router of a mixture are adapted", "[adapter][mixture]") {
  CHECK(ask(kMixtral, "").layers == std::vector<std::string>{"h.0.attn_qkv.q_proj model.layers.0.self_attn.q_proj",
                                                             "h.0.attn_qkv.v_proj model.layers.0.self_attn.v_proj",
                                                             "h.1.attn_qkv.q_proj model.layers.1.self_attn.q_proj",
                                                             "h.1.attn_qkv.v_proj model.layers.1.self_attn.v_proj"});
  CHECK(ask(kMixtral, "target_modules: [gate]").layers ==
        std::vector<std::string>{"h.0.mlp_router model.layers.0.block_sparse_moe.gate",
                                 "h.1.mlp_router model.layers.1.block_sparse_moe.gate"});
  CHECK(ask(kQwen, "target_modules: [gate]").layers ==
        std::vector<std::string>{"h.1.mlp_router model.layers.1.mlp.gate"});
}

TEST_CASE("adapters of experts are refused", "[adapter][mixture]") {
  const std::string hint = "  hint: write target_modules: [q_proj, k_proj, v_proj, o_proj]\n";
  CHECK(ask(kMixtral, "target_modules: all-linear").messages ==
        "error: target_modules is all-linear, which names the experts of a mixture, too, and roux does not adapt "
        "those\n" +
            hint);
  CHECK(ask(kMixtral, "target_modules: [q_proj, w1]").messages ==
        "error: target_modules names no layer: \"w1\"\n"
        "  hint: the model's layers are called q_proj, k_proj, v_proj, o_proj, gate; embedding, head and experts are "
        "not adapted\n");
  // PEFT 0.21: "Cannot convert PEFT target(s) gate_proj without also targeting up_proj because they are fused".
  CHECK(ask(kQwen, "target_modules: [gate_proj]").messages ==
        "error: target_modules names model.layers.0.mlp.gate_proj, and PEFT takes that for the experts of the other "
        "layers, which roux does not adapt\n" +
            hint);
  CHECK(ask(kQwen, "").messages == "error: PEFT has no default target_modules for this model\n" + hint);
  // PEFT 0.21: "lora.ParamWrapper does not work with lora_dropout != 0."
  CHECK(ask(kQwen, "target_modules: [gate], lora_dropout: 0.1").messages ==
        "error: target_modules names the router model.layers.1.mlp.gate, which PEFT adapts without lora_dropout\n"
        "  hint: leave out lora_dropout or the router\n");
  CHECK(ask(kQwen, "target_modules: [gate], use_dora: true").messages ==
        "error: target_modules names the router model.layers.1.mlp.gate, which PEFT adapts without use_dora\n"
        "  hint: leave out use_dora or the router\n");
}
