#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/model/decoder.h"
#include "components/model/rotary_fields.h"
#include "components/part/activation.h"
#include "generated/model/transformers.h"  // Config; declares make()
#include "runner/pretrained/config.h"

namespace components::model::transformers {
namespace {

using runner::core::Node;

/// A configuration that runner/pretrained has completed: what is read is there and of its type.
class Fields {
 public:
  explicit Fields(const Node& config) : config_(config) {}

  /// Null when it is null or this model type has no such field.
  const Node* find(const char* name) const {
    const Node* value = config_.find(name);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }
  std::int64_t integer(const char* name) const { return config_.find(name)->as_integer(); }
  double number(const char* name) const { return config_.find(name)->as_double(); }
  bool flag(const char* name) const {
    const Node* value = find(name);
    return value != nullptr && value->as_bool();
  }
  std::string text(const char* name) const { return config_.find(name)->as_string(); }

 private:
  const Node& config_;
};

double number_or(const Node& rope, const char* key, double otherwise) {
  const Node* value = rope.find(key);
  return value != nullptr && value->is_number() ? value->as_double() : otherwise;
}

}  // namespace

part::RotaryOptions rotary_of(const Node& rope, std::int64_t head, std::int64_t positions) {
  using Scaling = part::RotaryOptions::Scaling;
  const std::string type = rope.find("rope_type")->as_string();
  part::RotaryOptions rotary{.head = head, .base = rope.find("rope_theta")->as_double()};
  rotary.scaling = type == "linear"    ? Scaling::kLinear
                   : type == "dynamic" ? Scaling::kDynamic
                   : type == "yarn"    ? Scaling::kYarn
                   : type == "llama3"  ? Scaling::kLlama3
                                       : Scaling::kNone;
  rotary.factor = number_or(rope, "factor", 1.0);
  const Node* original = rope.find("original_max_position_embeddings");
  // The dynamic one counts from the longest text that the model takes as it is.
  const bool given = original != nullptr && rotary.scaling != Scaling::kDynamic;
  rotary.original_positions = given ? original->as_integer() : positions;
  rotary.low_freq_factor = number_or(rope, "low_freq_factor", rotary.low_freq_factor);
  rotary.high_freq_factor = number_or(rope, "high_freq_factor", rotary.high_freq_factor);
  rotary.beta_fast = number_or(rope, "beta_fast", rotary.beta_fast);
  rotary.beta_slow = number_or(rope, "beta_slow", rotary.beta_slow);
  rotary.mscale = number_or(rope, "mscale", 0);
  rotary.mscale_all_dim = number_or(rope, "mscale_all_dim", 0);
  if (const Node* factor = rope.find("attention_factor")) rotary.attention_factor = factor->as_double();
  if (const Node* truncate = rope.find("truncate")) rotary.truncate = truncate->as_bool();
  return rotary;
}

namespace {

DecoderOptions gpt2(const Fields& fields) {
  DecoderOptions options;
  options.layers = fields.integer("n_layer");
  options.width = fields.integer("n_embd");
  const std::int64_t heads = fields.integer("n_head"), head = options.width / heads;
  options.attention = {.heads = heads,
                       .kv_heads = heads,
                       .head = head,
                       .scale = fields.flag("scale_attn_weights") ? 1.0 / std::sqrt(static_cast<double>(head)) : 1.0};
  options.scale_by_layer = fields.flag("scale_attn_by_inverse_layer_idx");
  options.norm.eps = fields.number("layer_norm_epsilon");
  const Node* inner = fields.find("n_inner");
  options.mlp_width = inner != nullptr ? inner->as_integer() : 4 * options.width;
  options.learned_positions = true;
  options.dropout = {fields.number("embd_pdrop"), fields.number("attn_pdrop"), fields.number("resid_pdrop")};
  options.deviation = fields.number("initializer_range");
  options.residual_deviation = options.deviation / std::sqrt(2.0 * static_cast<double>(options.layers));
  return options;
}

/// Llama, Mistral and Qwen2.
DecoderOptions llama(const Fields& fields, std::vector<std::int64_t> windows, const std::string& type,
                     std::int64_t positions) {
  DecoderOptions options;
  options.layers = fields.integer("num_hidden_layers");
  options.width = fields.integer("hidden_size");
  const std::int64_t heads = fields.integer("num_attention_heads");
  const Node *shared = fields.find("num_key_value_heads"), *head_dim = fields.find("head_dim");
  const std::int64_t head = head_dim != nullptr ? head_dim->as_integer() : options.width / heads;
  options.attention = {.heads = heads,
                       .kv_heads = shared != nullptr ? shared->as_integer() : heads,
                       .head = head,
                       .scale = 1.0 / std::sqrt(static_cast<double>(head))};
  options.windows = std::move(windows);
  options.qkv_bias = type == "qwen2" || fields.flag("attention_bias");
  options.out_bias = fields.flag("attention_bias");
  options.norm = {.kind = part::NormOptions::Kind::kRms, .eps = fields.number("rms_norm_eps"), .bias = false};
  options.mlp_width = fields.integer("intermediate_size");
  options.gated = true;
  options.mlp_bias = fields.flag("mlp_bias");
  options.rotary = rotary_of(*fields.find("rope_parameters"), head, positions);
  options.dropout.attention = fields.number("attention_dropout");
  options.deviation = options.residual_deviation = fields.number("initializer_range");
  return options;
}

/// What the data hold beside what the configuration allows; false, and an error, when it is too much.
bool data_fit(const std::string& type, const DecoderOptions& options, const Inputs& inputs) {
  const TensorSpec& input = inputs.data.at(kInput);
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    inputs.diagnostics.error(inputs.block.location(), what, hint);
    return false;
  };
  if (input.dtype != Dtype::kInt64 || input.shape.size() != 2) {
    return refuse(type + " reads ids, int64 [batch, time], but the data is " + to_text(input),
                  "use data of text, or a model for features such as mlp");
  }
  if (input.vocab_size > options.vocab_size) {
    const Node* written = inputs.block.find("vocab_size");
    const bool is_written = written != nullptr && !written->is_null();
    return refuse("the model has a vocabulary of " + std::to_string(options.vocab_size) +
                      ", but the data has ids up to " + std::to_string(input.vocab_size - 1),
                  is_written
                      ? "set model.vocab_size to " + std::to_string(input.vocab_size) + " or more, or leave it out"
                      : "make the ids with the model's own tokenizer, or give it more rows with "
                        "init_from.resize_vocab: true");
  }
  const std::int64_t needed = positions_of(inputs.data);
  if (needed <= options.positions) return true;
  const std::string what = "the model was made for sequences of up to " + std::to_string(options.positions) +
                           ", but the data has sequences of max_seq_len " + std::to_string(needed);
  const std::string hint = "set max_seq_len of the data to " + std::to_string(options.positions);
  if (options.learned_positions) return refuse(what, hint);
  // Rotary positions have no end; how well a model knows those beyond is its matter.
  if (options.rotary->scaling != part::RotaryOptions::Scaling::kDynamic) {
    inputs.diagnostics.warning(inputs.block.location(), what, hint);
  }
  return true;
}

}  // namespace

std::shared_ptr<Model> make(const Config& config, const Inputs& inputs) {
  const std::optional<Node> checked = runner::pretrained::check_config(config.config, inputs.diagnostics);
  if (!checked) return nullptr;
  const Fields fields(*checked);
  const std::string type = fields.text("model_type");
  const bool is_gpt2 = type == "gpt2";
  const std::int64_t trained = fields.integer(is_gpt2 ? "n_positions" : "max_position_embeddings");
  DecoderOptions options =
      is_gpt2 ? gpt2(fields) : llama(fields, runner::pretrained::windows_of(*checked), type, trained);
  options.positions = config.max_position_embeddings.value_or(trained);
  options.vocab_size = config.vocab_size.value_or(fields.integer("vocab_size"));
  options.tied = fields.flag("tie_word_embeddings");
  const char* const of_activation = is_gpt2 ? "activation_function" : "hidden_act";
  const std::optional<part::Activation> activation = part::activation_named(fields.text(of_activation));
  if (!activation) {
    inputs.diagnostics.error(
        fields.find(of_activation)->location(),
        std::string(of_activation) + " is " + fields.text(of_activation) + ", which roux does not compute",
        std::string("it computes ") + part::activation_names());
    return nullptr;
  }
  options.activation = *activation;
  if (const Node* padding = is_gpt2 ? nullptr : fields.find("pad_token_id")) {
    options.padding_id = padding->as_integer() + (padding->as_integer() < 0 ? options.vocab_size : 0);
    if (options.padding_id < 0 || options.padding_id >= options.vocab_size) {
      inputs.diagnostics.error(padding->location(), "pad_token_id is " + padding->scalar_text() +
                                                        ", but the vocabulary has " +
                                                        std::to_string(options.vocab_size) + " ids");
      return nullptr;
    }
  }
  if (config.dropout) {
    options.dropout.attention = *config.dropout;
    if (is_gpt2) options.dropout.embedding = options.dropout.residual = *config.dropout;
  }
  return data_fit(type, options, inputs) ? make_decoder(options, inputs) : nullptr;
}

}  // namespace components::model::transformers
