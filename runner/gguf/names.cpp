#include "runner/gguf/names.h"

#include <algorithm>
#include <array>

#include "runner/pretrained/model_type.h"

namespace runner::gguf {
namespace {

constexpr std::array<std::string_view, 2> kEnds = {".weight", ".bias"};

/// What Llama and its descendants share.
std::vector<TensorName> llama_tensors(bool paired, bool head_norms) {
  std::vector<TensorName> names = {
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm", Rows::kSame, true},
      {"lm_head", "output"},
      {"model.layers.{i}.input_layernorm", "blk.{i}.attn_norm", Rows::kSame, true},
      {"model.layers.{i}.self_attn.q_proj", "blk.{i}.attn_q", paired ? Rows::kPaired : Rows::kSame},
      {"model.layers.{i}.self_attn.k_proj", "blk.{i}.attn_k", paired ? Rows::kPaired : Rows::kSame},
      {"model.layers.{i}.self_attn.v_proj", "blk.{i}.attn_v"},
      {"model.layers.{i}.self_attn.o_proj", "blk.{i}.attn_output"},
      {"model.layers.{i}.post_attention_layernorm", "blk.{i}.ffn_norm", Rows::kSame, true},
      {"model.layers.{i}.mlp.gate_proj", "blk.{i}.ffn_gate"},
      {"model.layers.{i}.mlp.up_proj", "blk.{i}.ffn_up"},
      {"model.layers.{i}.mlp.down_proj", "blk.{i}.ffn_down"},
  };
  if (head_norms) {
    names.push_back({"model.layers.{i}.self_attn.q_norm", "blk.{i}.attn_q_norm", Rows::kSame, true});
    names.push_back({"model.layers.{i}.self_attn.k_norm", "blk.{i}.attn_k_norm", Rows::kSame, true});
  }
  return names;
}

std::vector<TensorName> gpt2_tensors() {
  return {{"transformer.wte", "token_embd"},
          {"transformer.wpe", "position_embd", Rows::kSame, true},
          {"transformer.ln_f", "output_norm", Rows::kSame, true},
          {"lm_head", "output"},
          {"transformer.h.{i}.ln_1", "blk.{i}.attn_norm", Rows::kSame, true},
          {"transformer.h.{i}.attn.c_attn", "blk.{i}.attn_qkv", Rows::kTurned},
          {"transformer.h.{i}.attn.c_proj", "blk.{i}.attn_output", Rows::kTurned},
          {"transformer.h.{i}.ln_2", "blk.{i}.ffn_norm", Rows::kSame, true},
          {"transformer.h.{i}.mlp.c_fc", "blk.{i}.ffn_up", Rows::kTurned},
          {"transformer.h.{i}.mlp.c_proj", "blk.{i}.ffn_down", Rows::kTurned}};
}

const std::vector<Architecture>& all() {
  static const std::vector<Architecture> table = {
      {"gpt2", "gpt2", gpt2_tensors()},
      {"llama", "llama", llama_tensors(/*paired=*/true, /*head_norms=*/false)},
      {"mistral", "llama", llama_tensors(/*paired=*/true, /*head_norms=*/false)},
      {"qwen2", "qwen2", llama_tensors(/*paired=*/false, /*head_norms=*/false)},
      {"qwen3", "qwen3", llama_tensors(/*paired=*/false, /*head_norms=*/true)},
  };
  return table;
}

const TensorName* find(const std::vector<TensorName>& names, const char* TensorName::*from, const char* TensorName::*to,
                       std::string_view tensor, std::string& name) {
  for (const std::string_view end : kEnds) {
    if (!tensor.ends_with(end)) continue;
    const std::string_view module = tensor.substr(0, tensor.size() - end.size());
    for (const TensorName& one : names) {
      const auto number = pretrained::number_in(one.*from, module);
      if (!number) continue;
      name = (*number < 0 ? std::string(one.*to) : pretrained::with_number(one.*to, *number)) + std::string(end);
      return &one;
    }
  }
  return nullptr;
}

}  // namespace

const TensorName* Architecture::of_transformers(std::string_view tensor, std::string& called) const {
  return find(tensors, &TensorName::theirs, &TensorName::ours, tensor, called);
}

const TensorName* Architecture::of_file(std::string_view tensor, std::string& called) const {
  return find(tensors, &TensorName::ours, &TensorName::theirs, tensor, called);
}

const Architecture* find_architecture(std::string_view model_type) {
  const auto at = std::find_if(all().begin(), all().end(),
                               [model_type](const Architecture& one) { return model_type == one.model_type; });
  return at != all().end() ? &*at : nullptr;
}

const Architecture* architecture_called(std::string_view name) {
  const auto at =
      std::find_if(all().begin(), all().end(), [name](const Architecture& one) { return name == one.name; });
  return at != all().end() ? &*at : nullptr;
}

std::string architecture_types() { return "gpt2, llama, mistral, qwen2 and qwen3"; }

}  // namespace runner::gguf
