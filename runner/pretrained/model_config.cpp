#include "runner/pretrained/model_config.h"

#include <cmath>
#include <optional>
#include <utility>

#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/model_type.h"

namespace runner::pretrained {
namespace {

constexpr std::int64_t kUsualPositions = 2048;  // where nothing depends on it

using core::Failure;
using core::Node;
using core::Result;

/// A value of the model's block, or null.
const Node* get(const Node& model, const char* key) {
  const Node* value = model.find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

bool is_true(const Node& model, const char* key) {
  const Node* value = get(model, key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

std::string text(const Node& model, const char* key) { return get(model, key)->as_string(); }

/// Longest sequence: of the model, or, before a training settles that, of its data; 0 where the recipe has neither.
std::int64_t positions_of(const Node& resolved, const Node& model) {
  if (const Node* written = get(model, "n_positions")) return written->as_integer();
  const Node* of_data = resolved.at_path("data.train.max_seq_len");
  return of_data != nullptr && of_data->is_integer() ? of_data->as_integer() : 0;
}

/// Checked, so that what is written can be read again.
Result<Node> checked(const Node& config) {
  core::Diagnostics diagnostics;
  std::optional<Node> whole = check_config(config, diagnostics);
  if (!whole) return Failure{"the model has no configuration in Transformers: " + core::render(diagnostics)};
  return std::move(*whole);
}

Result<Node> of_transformers(const Node& model, const ShapeOf& shape_of, const std::vector<std::string>& labels) {
  Node config = *model.find("config");
  config.set("vocab_size", Node::integer(shape_of("wte.weight")[0]));  // which init_from.resize_vocab may have changed
  const ModelType& type = *model_type_of(model);
  const Facts facts(type, config);
  const auto set = [&](const char* role, const Node& value) {
    if (const std::string field = facts.field(role); !field.empty()) config.set(field, value);
  };
  if (const Node* dropout = get(model, "dropout")) {
    for (const char* role : {"embedding_dropout", "attention_dropout", "residual_dropout", "output.dropout"}) {
      set(role, *dropout);
    }
  }
  if (const Node* positions = get(model, "max_position_embeddings")) set("positions", *positions);
  if (const Node* factor = get(model, "router_aux_loss_coef")) {
    set("experts.balance", *factor);
    set("experts.balance_if", Node::boolean(true));
  }
  // Read back, the class says which head it is.
  config.set("architectures", Node::sequence({Node::string(type.architecture)}));
  if (type.tells_labels()) set_labels(shape_of("head.weight")[0], labels, config);
  if (type.head == kQuestionAnswering) {  // two logits, which have no names
    for (const char* key : {"id2label", "label2id", "num_labels"}) config.erase(key);
  }
  if (const Node* problem = get(model, "problem_type")) {
    config.set("problem_type", *problem);
  } else if (type.head == kSequenceClassification && get(config, "problem_type") == nullptr) {
    config.set("problem_type", Node::string(shape_of("head.weight")[0] == 1 ? kRegression : kOneLabel));
  }
  return config;
}

Result<Node> of_gpt(const Node& model, const ShapeOf& shape_of) {
  if (text(model, "positions") != "learned") {
    return Failure{"Transformers' gpt2 has learned positions only, and this model has rotary ones",
                   "model: {type: llama} is the model with rotary positions that Transformers has"};
  }
  Node config = Node::mapping();
  config.set("model_type", Node::string("gpt2"));
  config.set("vocab_size", Node::integer(shape_of("wte.weight")[0]));
  config.set("n_positions", Node::integer(shape_of("wpe.weight")[0]));
  for (const char* key : {"n_embd", "n_layer", "n_head"}) config.set(key, *get(model, key));
  for (const char* key : {"embd_pdrop", "attn_pdrop", "resid_pdrop"}) config.set(key, *get(model, "dropout"));
  config.set("tie_word_embeddings", *get(model, "tie_embeddings"));
  for (const char* key : {"bos_token_id", "eos_token_id"}) config.set(key, Node::null());
  return checked(config);
}

/// `positions`: what a scaling counts from that says nothing of it.
Node rope_of(const Node& model, std::int64_t positions) {
  Node rope = Node::mapping();
  const Node* scaling = get(model, "rope_scaling");
  rope.set("rope_type", scaling != nullptr ? *scaling->find("rope_type") : Node::string("default"));
  rope.set("rope_theta", *get(model, "rotary_base"));
  if (scaling == nullptr) return rope;
  const std::string type = scaling->find("rope_type")->as_string();
  const auto take = [&](const char* key) {
    if (const Node* value = get(*scaling, key)) rope.set(key, *value);
  };
  take("factor");
  if (type != "linear" && type != "dynamic") {
    rope.set("original_max_position_embeddings", Node::integer(positions));
    take("original_max_position_embeddings");
  }
  if (type == "llama3") {
    take("low_freq_factor");
    take("high_freq_factor");
  }
  if (type == "yarn") {
    for (const char* key : {"beta_fast", "beta_slow", "attention_factor"}) take(key);
  }
  return rope;
}

Result<Node> of_llama(const Node& resolved, const Node& model, const ShapeOf& shape_of) {
  const std::string biases = text(model, "attention_bias");
  const Node* window = get(model, "sliding_window");
  const bool mlp_bias = is_true(model, "mlp_bias");
  if (mlp_bias && (biases == "qkv" || window != nullptr)) {
    return Failure{"Transformers has no such model with mlp_bias, which only its llama has",
                   "train it with mlp_bias: false"};
  }
  if (window != nullptr && biases == "all") {
    return Failure{"Transformers has no model with a sliding window and a bias of attention's output",
                   "train it with attention_bias: none (mistral) or qkv (qwen2)"};
  }
  const std::string type = biases == "qkv" ? "qwen2" : window != nullptr ? "mistral" : "llama";
  const std::int64_t positions = positions_of(resolved, model);
  const Node* scaling = get(model, "rope_scaling");
  const bool counts = scaling != nullptr && text(*scaling, "rope_type") != "linear";
  const bool given = counts && get(*scaling, "original_max_position_embeddings") != nullptr;
  if (positions == 0 && counts && !given) {
    return Failure{"the recipe does not say how long its texts are, which this model's rope_scaling counts from",
                   "train it with n_positions, or with original_max_position_embeddings"};
  }
  if (scaling != nullptr && text(*scaling, "rope_type") == "dynamic") {
    const Node* original = get(*scaling, "original_max_position_embeddings");
    if (original != nullptr && original->as_integer() != positions) {
      return Failure{"Transformers' dynamic scaling counts from max_position_embeddings, here " +
                         std::to_string(positions) + ", not from original_max_position_embeddings " +
                         original->scalar_text(),
                     "leave original_max_position_embeddings out"};
    }
  }
  const std::int64_t heads = get(model, "n_head")->as_integer(), width = get(model, "n_embd")->as_integer();
  const Node *shared = get(model, "n_kv_head"), *head = get(model, "head_dim");
  Node config = Node::mapping();
  config.set("model_type", Node::string(type));
  config.set("vocab_size", Node::integer(shape_of("wte.weight")[0]));
  config.set("hidden_size", Node::integer(width));
  config.set("intermediate_size", Node::integer(shape_of("h.0.mlp_proj.weight")[1]));
  config.set("num_hidden_layers", *get(model, "n_layer"));
  config.set("num_attention_heads", Node::integer(heads));
  config.set("num_key_value_heads", shared != nullptr ? *shared : Node::integer(heads));
  config.set("head_dim", head != nullptr ? *head : Node::integer(width / heads));
  config.set("hidden_act", *get(model, "activation"));
  config.set("max_position_embeddings", Node::integer(positions > 0 ? positions : kUsualPositions));
  config.set("rms_norm_eps", *get(model, "norm_eps"));
  config.set("initializer_range", *get(model, "initializer_range"));
  config.set("tie_word_embeddings", *get(model, "tie_embeddings"));
  config.set("attention_dropout", *get(model, "attention_dropout"));
  config.set("rope_parameters", rope_of(model, positions));
  if (type == "llama") {
    config.set("attention_bias", Node::boolean(biases == "all"));
    config.set("mlp_bias", Node::boolean(mlp_bias));
  } else {
    config.set("sliding_window", window != nullptr ? *window : Node::null());
  }
  if (type == "qwen2") {
    config.set("use_sliding_window", Node::boolean(window != nullptr));
    config.set("max_window_layers", window != nullptr ? Node::integer(0) : *get(model, "n_layer"));
  }
  for (const char* key : {"bos_token_id", "eos_token_id"}) config.set(key, Node::null());
  return checked(config);
}

}  // namespace

void set_labels(std::int64_t count, std::vector<std::string> labels, Node& config) {
  if (static_cast<std::int64_t>(labels.size()) != count) {
    const Node* names = config.find("id2label");
    if (names != nullptr && names->is_mapping() && static_cast<std::int64_t>(names->entries().size()) == count) return;
    labels.clear();
    for (std::int64_t i = 0; i < count; ++i) labels.push_back("LABEL_" + std::to_string(i));
  }
  Node names = Node::mapping(), numbers = Node::mapping();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string& name = labels[static_cast<std::size_t>(i)];
    names.set(std::to_string(i), Node::string(name));
    numbers.set(name, Node::integer(i));
  }
  config.set("id2label", std::move(names));
  config.set("label2id", std::move(numbers));
  config.erase("num_labels");
}

Result<Node> config_of_recipe(const Node& resolved, const ShapeOf& shape_of, const std::vector<std::string>& labels) {
  const Node* model = resolved.find("model");
  const Node* type = model != nullptr && model->is_mapping() ? model->find("type") : nullptr;
  const std::string name = type != nullptr && type->is_string() ? type->as_string() : "";
  if (name == "transformers") return of_transformers(*model, shape_of, labels);
  if (name == "gpt") return of_gpt(*model, shape_of);
  if (name == "llama") return of_llama(resolved, *model, shape_of);
  return Failure{"a model of type " + name + " has no counterpart in Transformers", "gpt, llama and transformers have"};
}

}  // namespace runner::pretrained
