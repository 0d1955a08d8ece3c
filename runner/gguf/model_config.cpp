#include "runner/gguf/model_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::gguf {
namespace {

using core::Node;
using core::RunError;

/// What llama.cpp makes of `rope_freqs` for the published Llamas: the file has the factors, not what they are made of.
struct Stretch {
  double factor, low, high;
  std::int64_t positions;
};
constexpr Stretch kStretches[] = {{8.0, 1.0, 4.0, 8192}, {32.0, 1.0, 4.0, 8192}};

class Config {
 public:
  Config(const File& file, const Architecture& architecture, const std::string& name)
      : file_(file), architecture_(architecture), name_(name) {}

  Node make() {
    made_ = Node::mapping();
    made_.set("model_type", Node::string(architecture_.model_type));
    const bool is_gpt2 = std::string_view(architecture_.name) == "gpt2";
    is_gpt2 ? take_gpt2() : take_llama();
    take_tokens();
    refuse_others();
    return std::move(made_);
  }

 private:
  [[noreturn]] void wrong(const std::string& what, const std::string& hint) const {
    throw RunError(name_ + ": " + what, hint, core::kExitUsage);
  }

  std::string own(const char* key) const { return std::string(architecture_.name) + "." + key; }

  const Node* find(const char* key) {
    known_.push_back(own(key));
    return file_.values().find(known_.back());
  }

  Node integer(const char* key) {
    const Node* value = find(key);
    if (value != nullptr && value->is_integer() && value->as_integer() > 0) return *value;
    wrong(own(key) + (value == nullptr       ? " is missing"
                      : value->is_sequence() ? " differs by layer"
                                             : " is no count"),
          "roux reads models whose layers are alike; convert the model again with llama.cpp's convert_hf_to_gguf.py");
  }
  std::optional<Node> number(const char* key) {
    const Node* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return Node::floating(value->as_double());
    wrong(own(key) + " is no number", "convert the model again with llama.cpp's convert_hf_to_gguf.py");
  }
  Node epsilon(const char* key) {
    const auto value = number(key);
    if (value) return *value;
    wrong(own(key) + " is missing", "convert the model again with llama.cpp's convert_hf_to_gguf.py");
  }

  std::int64_t rows() const {
    const Tensor* embedding = file_.find("token_embd.weight");
    if (embedding != nullptr && embedding->shape.size() == 2) return embedding->shape.front();
    wrong("there is no matrix token_embd.weight", "get the file again");
  }
  bool has(const char* tensor) const { return file_.find(tensor) != nullptr; }

  void take_gpt2() {
    made_.set("architectures", Node::sequence({Node::string("GPT2LMHeadModel")}));
    made_.set("n_embd", integer("embedding_length"));
    made_.set("n_layer", integer("block_count"));
    made_.set("n_head", integer("attention.head_count"));
    made_.set("n_positions", integer("context_length"));
    made_.set("n_inner", integer("feed_forward_length"));
    made_.set("layer_norm_epsilon", epsilon("attention.layer_norm_epsilon"));
    made_.set("activation_function", Node::string("gelu_new"));
    made_.set("vocab_size", Node::integer(rows()));
    made_.set("tie_word_embeddings", Node::boolean(!has("output.weight")));
  }

  void take_llama() {
    const std::string_view type = architecture_.model_type;
    const char* of_class = type == "qwen2"   ? "Qwen2ForCausalLM"
                           : type == "qwen3" ? "Qwen3ForCausalLM"
                                             : "LlamaForCausalLM";
    made_.set("architectures", Node::sequence({Node::string(of_class)}));
    const Node width = integer("embedding_length"), heads = integer("attention.head_count");
    made_.set("hidden_size", width);
    made_.set("num_hidden_layers", integer("block_count"));
    made_.set("num_attention_heads", heads);
    made_.set("num_key_value_heads",
              find("attention.head_count_kv") != nullptr ? integer("attention.head_count_kv") : heads);
    made_.set("intermediate_size", integer("feed_forward_length"));
    made_.set("max_position_embeddings", integer("context_length"));
    made_.set("rms_norm_eps", epsilon("attention.layer_norm_rms_epsilon"));
    made_.set("hidden_act", Node::string("silu"));
    made_.set("vocab_size", Node::integer(rows()));
    made_.set("tie_word_embeddings", Node::boolean(!has("output.weight")));
    const Node* written = find("attention.key_length");
    const std::int64_t head =
        written != nullptr ? integer("attention.key_length").as_integer() : width.as_integer() / heads.as_integer();
    if (find("attention.value_length") != nullptr && integer("attention.value_length").as_integer() != head) {
      wrong("keys and values of a head have other lengths", "roux computes no such model");
    }
    if (type != "qwen2" || head * heads.as_integer() != width.as_integer()) made_.set("head_dim", Node::integer(head));
    if (type == "llama") made_.set("mlp_bias", Node::boolean(has("blk.0.ffn_down.bias")));
    if (type != "qwen2") made_.set("attention_bias", Node::boolean(has("blk.0.attn_q.bias")));
    take_rope(head);
  }

  void take_rope(std::int64_t head) {
    const Node* size = find("rope.dimension_count");
    if (size != nullptr && size->is_integer() && size->as_integer() != head) {
      wrong(own("rope.dimension_count") + " is " + std::to_string(size->as_integer()) + ", and a head has " +
                std::to_string(head) + " features",
            "roux turns whole heads of these models");
    }
    Node rope = Node::mapping();
    const auto base = number("rope.freq_base");
    rope.set("rope_theta", base ? *base : Node::floating(10000.0));
    const Node* type = find("rope.scaling.type");
    const auto factor = number("rope.scaling.factor");
    const Node* positions = find("rope.scaling.original_context_length");
    const std::string kind = type != nullptr && type->is_string() ? type->as_string() : "none";
    if (const Tensor* factors = file_.find("rope_freqs.weight")) {
      if (kind != "none") wrong("it has rope_freqs.weight and " + own("rope.scaling.type"), "get the file again");
      take_stretch(*factors, rope.find("rope_theta")->as_double(), head, rope);
    } else if (kind == "none") {
      rope.set("rope_type", Node::string("default"));
    } else if ((kind == "linear" || kind == "yarn") && factor) {
      rope.set("rope_type", Node::string(kind));
      rope.set("factor", *factor);
      if (kind == "yarn" && positions != nullptr) rope.set("original_max_position_embeddings", *positions);
    } else {
      wrong(own("rope.scaling.type") + " is " + core::quote(kind), "roux reads linear and yarn there");
    }
    made_.set("rope_parameters", std::move(rope));
  }

  void take_stretch(const Tensor& factors, double base, std::int64_t head, Node& rope) {
    const auto is_one = [&](const Stretch& stretch) {
      for (std::int64_t i = 0; i < head / 2; ++i) {
        const double wavelength =
            2 * std::numbers::pi * std::pow(base, 2 * static_cast<double>(i) / static_cast<double>(head));
        const double turns = static_cast<double>(stretch.positions) / wavelength;
        const double smooth = std::clamp((turns - stretch.low) / (stretch.high - stretch.low), 0.0, 1.0);
        const double expected = 1.0 / ((1.0 - smooth) / stretch.factor + smooth);
        float there;
        std::memcpy(&there, factors.data + i * static_cast<std::int64_t>(sizeof there), sizeof there);
        if (std::fabs(there - expected) > expected * 1e-4) return false;
      }
      return true;
    };
    const bool fits = factors.type == TensorType::kF32 && factors.shape == std::vector<std::int64_t>{head / 2};
    const auto* const at =
        fits ? std::find_if(std::begin(kStretches), std::end(kStretches), is_one) : std::end(kStretches);
    if (at == std::end(kStretches)) {
      wrong("its rope_freqs.weight is of no Llama that roux knows",
            "take the model's folder of Transformers: its config.json says what the factors are made of");
    }
    rope.set("rope_type", Node::string("llama3"));
    rope.set("factor", Node::floating(at->factor));
    rope.set("low_freq_factor", Node::floating(at->low));
    rope.set("high_freq_factor", Node::floating(at->high));
    rope.set("original_max_position_embeddings", Node::integer(at->positions));
  }

  void take_tokens() {
    for (const char* name : {"bos_token_id", "eos_token_id"}) {
      const Node* id = file_.values().find(std::string("tokenizer.ggml.") + name);
      made_.set(name, id != nullptr && id->is_integer() ? *id : Node());
    }
  }

  /// Whatever else the file says of the model may change what it computes.
  void refuse_others() {
    known_.push_back(own("vocab_size"));
    known_.push_back(own("tensor_data_layout"));
    known_.push_back(own("rope.scaling.finetuned"));
    const std::string prefix = std::string(architecture_.name) + ".";
    for (const Node::Entry& entry : file_.values().entries()) {
      if (!entry.key.starts_with(prefix) || std::find(known_.begin(), known_.end(), entry.key) != known_.end())
        continue;
      const bool is_zero = entry.value.is_number() && entry.value.as_double() == 0.0;  // no experts, no window
      if (is_zero) continue;
      wrong("it has " + core::quote(entry.key) + ", which roux does not know of a " + architecture_.model_type,
            "take the model's folder of Transformers");
    }
  }

  const File& file_;
  const Architecture& architecture_;
  const std::string& name_;
  Node made_;
  std::vector<std::string> known_;
};

}  // namespace

Node config_of(const File& file, const Architecture& architecture, const std::string& name) {
  return Config(file, architecture, name).make();
}

}  // namespace runner::gguf
