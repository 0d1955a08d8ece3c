#include <cmath>
#include <memory>
#include <optional>

#include "components/model/stack.h"
#include "generated/model/gpt.h"  // Config; declares make()

namespace components::model::gpt {

std::shared_ptr<Model> make(const Config& config, const Inputs& inputs) {
  const std::optional<DecoderSizes> sizes =
      settle_decoder_sizes("gpt", config.vocab_size, "n_positions", config.n_positions, inputs);
  if (!sizes) return nullptr;
  const std::int64_t head = config.n_embd / config.n_head;
  StackOptions options;
  options.layers = config.n_layer;
  options.width = config.n_embd;
  options.vocab_size = sizes->vocab_size;
  options.positions = sizes->positions;
  options.attention = {.heads = config.n_head,
                       .kv_heads = config.n_head,
                       .head = head,
                       .scale = 1.0 / std::sqrt(static_cast<double>(head))};
  options.qkv_bias = options.out_bias = options.mlp_bias = options.norm.bias = config.bias;
  options.mlp_width = 4 * config.n_embd;
  if (config.positions == Positions::kRotary) {
    options.rotary = part::RotaryOptions{.head = head, .base = config.rotary_base};
  } else {
    options.learned_positions = true;
  }
  options.tied = config.tie_embeddings;
  options.dropout = {config.dropout, config.dropout, config.dropout, config.dropout};
  // Residual branches add up over depth, so their last projections start smaller (GPT-2).
  options.residual_deviation = options.deviation / std::sqrt(2.0 * static_cast<double>(config.n_layer));
  auto model = make_stack(options, inputs);
  if (model != nullptr) model->set_sizes_of_data(sizes->of_data);
  return model;
}

}  // namespace components::model::gpt
