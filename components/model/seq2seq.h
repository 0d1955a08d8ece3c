#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "components/model/model.h"
#include "components/model/stack.h"
#include "components/part/attention.h"
#include "components/part/cross_attention.h"
#include "components/part/mlp.h"
#include "components/part/relative_bias.h"

namespace runner::pretrained {
class Facts;
}

namespace components::model {

/// A model with an encoder and a decoder, as T5.
struct Seq2SeqOptions {
  StackOptions stack;  ///< what both have in common, `layers` of the encoder, and the head
  std::int64_t decoder_layers = 0;
  part::RelativeBiasOptions relative;  ///< `both_ways` is filled in
  std::int32_t decoder_start = 0;      ///< the id that begins what the decoder reads
  double factor = 1.0;                 ///< of the deviations that new weights begin with, which follow from their sizes
};

/// The parts of a block of such a model, whose norms are RMS norms in front of the branches and whose layers have no
/// biases.
part::SelfAttentionOptions self_attention_of(const Seq2SeqOptions& options, bool causal);
part::CrossAttentionOptions cross_attention_of(const Seq2SeqOptions& options);
part::MlpOptions mlp_of(const Seq2SeqOptions& options);
part::Init relative_init_of(const Seq2SeqOptions& options);

/// False, and an error, where a configuration of such a model is not complete, or the data have no texts that a decoder
/// writes of others. `type`: its name.
bool fits_seq2seq(const std::string& type, const runner::pretrained::Facts& facts, const Inputs& inputs);

/// Of a configuration; `stack`: what any model has.
Seq2SeqOptions seq2seq_of(const StackOptions& stack, const runner::pretrained::Facts& facts);

/// Blocks `embed` (`wte`), `encoder.h.0` ... (`ln_1`, `attn_bias` of the first, `attn_qkv`, `attn_proj`, `ln_2`,
/// `mlp_fc` or with a gate `mlp_gated_fc`, `mlp_proj`), `encoder.norm` (`encoder.ln_f`), `decoder.embed`, which shares
/// `wte`, `h.0` ... (the same, and `ln_x`, `cross_q`, `cross_kv`, `cross_proj` behind self-attention) and `head`
/// (`ln_f`, `head` when it is not tied). Reads ids [B, S], kAttentionMask of them where the data have it, and
/// kDecoderInput [B, T]; gives logits [B, T, V].
std::shared_ptr<Model> make_seq2seq(const Seq2SeqOptions& options, const Inputs& inputs);

}  // namespace components::model
