#include <cmath>
#include <memory>
#include <optional>

#include "components/model/stack.h"
#include "components/part/activation.h"
#include "generated/model/llama.h"  // Config; declares make()

namespace components::model::llama {
namespace {

part::RotaryOptions rotary_of(const Config& config, std::int64_t head, std::int64_t positions) {
  part::RotaryOptions rotary{.head = head, .base = config.rotary_base};
  if (!config.rope_scaling) return rotary;
  const auto& scaling = *config.rope_scaling;
  using Scaling = part::RotaryOptions::Scaling;
  switch (scaling.rope_type) {
    case RopeType::kLinear: rotary.scaling = Scaling::kLinear; break;
    case RopeType::kDynamic: rotary.scaling = Scaling::kDynamic; break;
    case RopeType::kYarn: rotary.scaling = Scaling::kYarn; break;
    case RopeType::kLlama3: rotary.scaling = Scaling::kLlama3; break;
  }
  rotary.factor = scaling.factor;
  rotary.original_positions = scaling.original_max_position_embeddings.value_or(positions);
  rotary.low_freq_factor = scaling.low_freq_factor;
  rotary.high_freq_factor = scaling.high_freq_factor;
  rotary.beta_fast = scaling.beta_fast;
  rotary.beta_slow = scaling.beta_slow;
  rotary.attention_factor = scaling.attention_factor;
  return rotary;
}

}  // namespace

std::shared_ptr<Model> make(const Config& config, const Inputs& inputs) {
  const std::optional<DecoderSizes> sizes =
      settle_decoder_sizes("llama", config.vocab_size, "n_positions", config.n_positions, inputs);
  if (!sizes) return nullptr;
  const std::int64_t head = config.head_dim.value_or(config.n_embd / config.n_head);
  StackOptions options;
  options.layers = config.n_layer;
  options.width = config.n_embd;
  options.vocab_size = sizes->vocab_size;
  options.positions = sizes->positions;
  options.attention = {.heads = config.n_head,
                       .kv_heads = config.n_kv_head.value_or(config.n_head),
                       .head = head,
                       .scale = 1.0 / std::sqrt(static_cast<double>(head))};
  if (config.sliding_window) {
    options.windows.assign(static_cast<std::size_t>(config.n_layer), *config.sliding_window);
  }
  options.qkv_bias = config.attention_bias != AttentionBias::kNone;
  options.out_bias = config.attention_bias == AttentionBias::kAll;
  options.norm = {.kind = part::NormOptions::Kind::kRms, .eps = config.norm_eps, .bias = false};
  options.mlp_width = config.mlp_width.value_or((config.n_embd * 8 / 3 + 31) / 32 * 32);
  options.activation = part::activation_named(to_text(config.activation)).value();
  options.gated = true;
  options.mlp_bias = config.mlp_bias;
  options.rotary = rotary_of(config, head, sizes->positions);
  options.tied = config.tie_embeddings;
  options.dropout.attention = config.attention_dropout;
  options.deviation = options.residual_deviation = config.initializer_range;
  auto model = make_stack(options, inputs);
  if (model != nullptr) model->set_sizes_of_data(sizes->of_data);
  return model;
}

}  // namespace components::model::llama
