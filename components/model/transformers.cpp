#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/model/head_of_config.h"
#include "components/model/rotary_fields.h"
#include "components/model/seq2seq.h"
#include "components/model/stack.h"
#include "components/part/activation.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "generated/model/transformers.h"  // Config; declares make()
#include "runner/pretrained/config.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/model_type.h"

namespace components::model::transformers {
namespace {

using runner::core::Node;
using runner::pretrained::Facts;

double number_or(const Node& rope, const char* key, double otherwise) {
  const Node* value = rope.find(key);
  return value != nullptr && value->is_number() ? value->as_double() : otherwise;
}

}  // namespace

part::RotaryOptions rotary_of(const Node& rope, std::int64_t head, std::int64_t positions) {
  using Scaling = part::RotaryOptions::Scaling;
  const std::string type = rope.find("rope_type")->as_string();
  part::RotaryOptions rotary{.head = head, .base = rope.find("rope_theta")->as_double()};
  rotary.scaling = type == "linear"     ? Scaling::kLinear
                   : type == "dynamic"  ? Scaling::kDynamic
                   : type == "yarn"     ? Scaling::kYarn
                   : type == "llama3"   ? Scaling::kLlama3
                   : type == "longrope" ? Scaling::kLong
                                        : Scaling::kNone;
  rotary.head = static_cast<std::int64_t>(static_cast<double>(head) * number_or(rope, "partial_rotary_factor", 1.0));
  rotary.factor = number_or(rope, "factor", 1.0);
  const Node* original = rope.find("original_max_position_embeddings");
  // The dynamic one counts from the longest text that the model takes as it is.
  const bool given = original != nullptr && rotary.scaling != Scaling::kDynamic;
  rotary.original_positions = given ? original->as_integer() : positions;
  if (rotary.scaling == Scaling::kLong) {
    const double longer = static_cast<double>(positions) / static_cast<double>(rotary.original_positions);
    rotary.factor = number_or(rope, "factor", longer);
    for (const Node& factor : rope.find("short_factor")->items()) rotary.short_factors.push_back(factor.as_double());
    for (const Node& factor : rope.find("long_factor")->items()) rotary.long_factors.push_back(factor.as_double());
  }
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

part::NormOptions::Kind norm_kind(const std::string& name) {
  using Kind = part::NormOptions::Kind;
  return name == "rms_plus_one" ? Kind::kRmsPlusOne : name == "rms" ? Kind::kRms : Kind::kLayer;
}

part::AttentionOptions attention_of(const Facts& facts) {
  const std::int64_t heads = facts.integer("heads");
  return {.heads = heads,
          .kv_heads = facts.integer("kv_heads", heads),
          .head = facts.head(),
          .scale = facts.scale_of_scores(),
          .causal = !facts.flag("both_ways"),
          .cap = facts.number("score_cap", 0)};
}

/// Of blocks that have any. `balances`: whether the head is one whose loss Transformers adds their balance to.
ExpertOptions experts_of(const Facts& facts, bool balances) {
  ExpertOptions experts;
  experts.of_layer = facts.mixtures();
  if (experts.of_layer.empty()) return experts;
  experts.count = facts.integer("experts.count");
  experts.chosen = facts.integer("experts.chosen");
  experts.width = facts.integer("experts.width");
  experts.normalized = facts.flag("experts.normalized");
  if (balances && facts.flag("experts.balance_if")) experts.balance = facts.number("experts.balance", 0);
  return experts;
}

/// But for the sizes of vocabulary and positions, and the activation.
StackOptions options_of(const Facts& facts) {
  StackOptions options;
  options.layers = facts.integer("layers");
  options.width = facts.integer("width");
  options.attention = attention_of(facts);
  options.scale_by_layer = facts.flag("scaled_by_layer");
  options.windows = facts.windows();
  options.qkv_bias = facts.flag("qkv_bias");
  options.out_bias = facts.flag("out_bias");
  const std::string queries = facts.text("query_norm"), place = facts.text("norms");
  options.query_norm = queries == "head"  ? part::QueryNorm::kHead
                       : queries == "all" ? part::QueryNorm::kAll
                                          : part::QueryNorm::kNone;
  options.norms = place == "after"    ? NormPlace::kAfter
                  : place == "around" ? NormPlace::kAround
                  : place == "sums"   ? NormPlace::kSums
                                      : NormPlace::kBefore;
  options.norm.kind = norm_kind(facts.text("norm"));
  options.norm.bias = options.norm.kind == part::NormOptions::Kind::kLayer && facts.flag("norm_bias", true);
  options.embedding_norm = facts.flag("embedding_norm");
  options.first_norm = facts.flag("first_norm", true);
  options.final_norm = facts.flag("final_norm", true);
  options.token_types = facts.integer("token_types", 0);
  options.norm.eps = facts.number("norm_eps", options.norm.eps);
  options.mlp_width = facts.integer("mlp_width", 4 * options.width);
  options.gated = facts.gated();
  options.mlp_bias = facts.flag("mlp_bias");
  options.learned_positions = facts.flag("learned_positions");
  options.after_padding = facts.flag("positions_after_padding");
  options.rotated = facts.rotated();
  if (const Node* rotary = facts.find("rotary")) {
    const Node *full = rotary->find(runner::pretrained::kFullAttention),
               *sliding = rotary->find(runner::pretrained::kSlidingAttention);
    const std::int64_t positions = facts.integer("positions");
    options.rotary = rotary_of(full != nullptr ? *full : *rotary, facts.head(), positions);
    if (sliding != nullptr) options.local_rotary = rotary_of(*sliding, facts.head(), positions);
  }
  options.embedding_scale = facts.flag("scaled_embedding") ? std::sqrt(static_cast<double>(options.width))
                                                           : facts.number("embedding_scale", 1);
  options.residual_scale = facts.number("residual_scale", 1);
  options.logit_divisor = facts.number("logit_divisor", 1);
  options.logit_cap = facts.number("logit_cap", 0);
  options.tied = facts.flag("tied");
  options.dropout = {facts.number("embedding_dropout", 0), facts.number("attention_dropout", 0),
                     facts.number("residual_dropout", 0)};
  options.dropout.mlp = facts.number("mlp_dropout", options.dropout.residual);
  options.dropout.hidden = facts.number("hidden_dropout", 0);
  options.deviation = options.residual_deviation = facts.number("deviation", options.deviation);
  if (facts.flag("scaled_residuals"))
    options.residual_deviation /= std::sqrt(2.0 * static_cast<double>(options.layers));
  return options;
}

/// With the head that the recipe names, or the configuration's class has. Null, and an error, where the type has no
/// such head, or none is meant.
const runner::pretrained::ModelType* type_of(const Config& config, const Node& checked, const Inputs& inputs) {
  const auto& by_class = runner::pretrained::model_type_of_config(checked);
  const std::string head = config.head ? std::string(to_text(*config.head)) : "";
  const auto has_head = runner::pretrained::check_head(checked, head);
  if (has_head) return head.empty() ? &by_class : runner::pretrained::find_model_type(by_class.name, head);
  const Node& at = head.empty() ? inputs.block : *inputs.block.find("head");
  inputs.diagnostics.error(at.location(), has_head.failure().message, has_head.failure().hint);
  return nullptr;
}

/// What the data hold beside what the configuration allows, `most` ids in a text; false, and an error, when it is too
/// much.
bool data_fit(const std::string& type, const StackOptions& options, std::int64_t most, const Inputs& inputs) {
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
  const TensorSpec* types = inputs.data.find(kTokenTypes);
  if (types != nullptr && options.token_types > 0 && types->vocab_size > options.token_types) {
    return refuse("the model has " + std::to_string(options.token_types) +
                      " token types, but the data has types up to " + std::to_string(types->vocab_size - 1),
                  "leave token_type_ids out of the data, or make them with the model's own tokenizer");
  }
  const std::int64_t needed = inputs.data.longest_sequence();
  if (needed <= most || most == 0) return true;  // 0: positions are relative
  const std::string what = "the model was made for sequences of up to " + std::to_string(most) +
                           ", but the data has sequences of max_seq_len " + std::to_string(needed);
  const std::string hint = "set max_seq_len of the data to " + std::to_string(most);
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
  const runner::pretrained::ModelType* const type = type_of(config, *checked, inputs);
  if (type == nullptr) return nullptr;
  const Facts facts(*type, *checked);
  StackOptions options = options_of(facts);
  const bool balances = type->head == runner::pretrained::kCausalLm;
  options.experts = experts_of(facts, balances);
  if (config.router_aux_loss_coef && (options.experts.of_layer.empty() || !balances)) {
    const std::string& what = balances ? type->name : type->architecture;
    inputs.diagnostics.error(inputs.block.find("router_aux_loss_coef")->location(),
                             "router_aux_loss_coef is set, but " + what +
                                 (balances ? " has no layer with a mixture of experts" : " adds no such loss"),
                             "remove it");
    return nullptr;
  }
  if (config.router_aux_loss_coef) options.experts.balance = *config.router_aux_loss_coef;
  if (!settle_head(config, *type, facts, *checked, inputs, options.head)) return nullptr;
  if (config.max_position_embeddings && !facts.has("positions")) {
    inputs.diagnostics.error(inputs.block.find("max_position_embeddings")->location(),
                             "max_position_embeddings is set, but the positions of " + type->name + " are relative",
                             "remove it: a text may have any length");
    return nullptr;
  }
  options.positions = config.max_position_embeddings.value_or(facts.integer("positions", 0));
  options.vocab_size = config.vocab_size.value_or(facts.integer("vocabulary"));
  const std::optional<part::Activation> activation = activation_of(facts, "activation", inputs);
  if (!activation) return nullptr;
  options.activation = *activation;
  if (const Node* padding = facts.find("padding")) {
    options.padding_id = padding->as_integer() + (padding->as_integer() < 0 ? options.vocab_size : 0);
    if (options.padding_id < 0 || options.padding_id >= options.vocab_size) {
      inputs.diagnostics.error(padding->location(), facts.field("padding") + " is " + padding->scalar_text() +
                                                        ", but the vocabulary has " +
                                                        std::to_string(options.vocab_size) + " ids");
      return nullptr;
    }
  }
  if (config.dropout) {
    for (const auto& [role, rate] :
         {std::pair{"embedding_dropout", &options.dropout.embedding},
          std::pair{"attention_dropout", &options.dropout.attention},
          std::pair{"residual_dropout", &options.dropout.residual}, std::pair{"mlp_dropout", &options.dropout.mlp},
          std::pair{"hidden_dropout", &options.dropout.hidden}}) {
      if (!facts.field(role).empty()) *rate = *config.dropout;
    }
    if (!facts.has("mlp_dropout")) options.dropout.mlp = options.dropout.residual;
  }
  if (!data_fit(type->name, options, facts.longest_text(options.positions), inputs)) return nullptr;
  if (!facts.has("decoder_layers")) {
    auto model = make_stack(options, inputs);
    if (model != nullptr) model->set_positions(facts.longest_text(options.positions));
    return model;
  }
  options.head.dropout = options.dropout.residual;
  return fits_seq2seq(type->name, facts, inputs) ? make_seq2seq(seq2seq_of(options, facts), inputs) : nullptr;
}

}  // namespace components::model::transformers
