// B: samples   S: positions of the source   T: positions of the decoder   C: features of the stream

#include "components/model/seq2seq.h"

#include <ATen/TensorOperators.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/embed.h"
#include "components/model/heads.h"
#include "components/model/seq2seq_layer.h"
#include "components/model/stack_pass.h"
#include "components/ops/dropout.h"
#include "components/part/cached/cached.h"
#include "components/tensor/tensors.h"
#include "runner/pretrained/facts.h"

namespace components::model {
namespace {

TensorSpec stream(const char* name, const Seq2SeqOptions& options) {
  return {name, Dtype::kFloat32, {kBatch, kTime, options.stack.width}};
}

/// `x` with this fraction of its elements left out, while it is trained.
at::Tensor dropped(at::Tensor x, bool training, double rate) {
  if (!training || rate <= 0) return x;
  const std::optional<Dropout> dropout(std::in_place, rate, x);
  return drop(std::move(x), dropout, rate, 0);
}

/// The embedding of the source, which belongs to the encoder.
class SourceEmbed final : public block::BasicBlock {
 public:
  SourceEmbed(const Seq2SeqOptions& options, part::WeightMaker& weights)
      : BasicBlock("embed", {kInput, Dtype::kInt64, {kBatch, kTime}, false}, stream(kEncoderStream, options), weights),
        dropout_(options.stack.dropout.embedding),
        wte_(declared(), "wte", options.stack.vocab_size, options.stack.width, part::normal(options.factor)) {}

  void forward(TensorMap& activations) const override {
    write(activations, dropped(wte_.forward(read(activations)), training(), dropout_));
  }
  bool encodes() const override { return true; }
  std::vector<std::string> lowered_weights() const override { return {"wte.weight"}; }
  const at::Tensor& token_weight() const { return wte_.weight(); }

 private:
  double dropout_;
  part::Embedding wte_;
};

/// What the decoder looks at: the last norm of the encoder.
class EncoderNorm final : public block::BasicBlock {
 public:
  EncoderNorm(const Seq2SeqOptions& options, part::WeightMaker& weights)
      : BasicBlock("encoder.norm", stream(kEncoderStream, options), stream(kEncoded, options), weights),
        dropout_(options.stack.head.dropout),
        ln_f_(declared(), "encoder.ln_f", norm_of(options.stack)) {}

  void forward(TensorMap& activations) const override {
    write(activations, dropped(ln_f_.forward(read(activations)), training(), dropout_));
  }
  bool encodes() const override { return true; }

 private:
  double dropout_;
  part::Norm ln_f_;
};

/// The same embedding of what the decoder reads.
class DecoderEmbed final : public block::BasicBlock {
 public:
  DecoderEmbed(const Seq2SeqOptions& options, const at::Tensor& token_weight)
      : BasicBlock("decoder.embed", {kDecoderInput, Dtype::kInt64, {kBatch, kTime}, false},
                   stream(kDecoderStream, options)),
        dropout_(options.stack.dropout.embedding),
        wte_(token_weight) {}

  void forward(TensorMap& activations) const override {
    write(activations, dropped(wte_.forward(read(activations)), training(), dropout_));
  }
  bool decodes() const override { return true; }
  void decode(TensorMap& activations, part::CachedPass&) const override {
    write(activations, wte_.forward(read(activations)).to(at::kFloat));
  }
  std::vector<block::Tie> ties() const override { return {{"decoder.wte.weight", "wte.weight"}}; }
  std::vector<std::string> lowered_weights() const override { return {"wte.weight"}; }

 private:
  double dropout_;
  part::Embedding wte_;
};

part::Init init_of(const Seq2SeqOptions& options, std::int64_t inputs) {
  return part::normal(options.factor / std::sqrt(static_cast<double>(inputs)));
}

}  // namespace

part::SelfAttentionOptions self_attention_of(const Seq2SeqOptions& options, bool causal) {
  const StackOptions& stack = options.stack;
  part::SelfAttentionOptions attention;
  attention.of = stack.attention;
  attention.of.causal = causal;
  attention.width = stack.width;
  attention.qkv_bias = attention.out_bias = false;
  attention.in = init_of(options, stack.width);
  // Scores are not divided by the root of the head: queries begin smaller by that.
  attention.in.first_rows = attention.of.heads * attention.of.head;
  attention.in.first_factor = 1.0 / std::sqrt(static_cast<double>(attention.of.head));
  attention.out = init_of(options, attention.of.heads * attention.of.head);
  return attention;
}

part::CrossAttentionOptions cross_attention_of(const Seq2SeqOptions& options) {
  const StackOptions& stack = options.stack;
  part::CrossAttentionOptions attention;
  attention.of = stack.attention;
  attention.of.causal = false;
  attention.width = stack.width;
  attention.q = init_of(options, stack.width * attention.of.head);
  attention.kv = init_of(options, stack.width);
  attention.out = init_of(options, attention.of.heads * attention.of.head);
  return attention;
}

part::MlpOptions mlp_of(const Seq2SeqOptions& options) {
  const StackOptions& stack = options.stack;
  part::MlpOptions mlp{stack.width,
                       stack.mlp_width,
                       stack.activation,
                       stack.gated,
                       /*bias=*/false,
                       init_of(options, stack.width),
                       init_of(options, stack.mlp_width)};
  if (stack.gated) mlp.fc = "gated_fc";  // it joins two layers of Transformers, and without a gate it is one
  return mlp;
}

part::Init relative_init_of(const Seq2SeqOptions& options) { return init_of(options, options.stack.width); }

bool fits_seq2seq(const std::string& type, const runner::pretrained::Facts& facts, const Inputs& inputs) {
  if (!facts.has("decoder_start")) {
    inputs.diagnostics.error(inputs.block.location(),
                             "the configuration has neither decoder_start_token_id nor pad_token_id, by which a "
                             "decoder begins",
                             "give it decoder_start_token_id");
    return false;
  }
  const std::int64_t least = facts.integer("relative_buckets") / 2;
  if (facts.integer("relative_distance") <= least) {
    inputs.diagnostics.error(facts.find("relative_distance")->location(),
                             facts.field("relative_distance") + " is " +
                                 std::to_string(facts.integer("relative_distance")) +
                                 ", but has to be more than half of " + facts.field("relative_buckets"),
                             "half of the buckets are for one distance each");
    return false;
  }
  if (inputs.data.find(kTarget) == nullptr || inputs.data.find(kDecoderInput) != nullptr) return true;
  inputs.diagnostics.error(inputs.block.location(), type + " writes one text of another, and the data are single texts",
                           "use data of type jsonl or ids, whose records have a source and a target; or add "
                           "transforms: [{type: span_corruption}] to them");
  return false;
}

Seq2SeqOptions seq2seq_of(const StackOptions& stack, const runner::pretrained::Facts& facts) {
  Seq2SeqOptions options;
  options.stack = stack;
  options.decoder_layers = facts.integer("decoder_layers");
  options.relative.heads = stack.attention.heads;
  options.relative.buckets = facts.integer("relative_buckets");
  options.relative.max_distance = facts.integer("relative_distance");
  options.decoder_start = static_cast<std::int32_t>(facts.integer("decoder_start"));
  options.factor = facts.number("deviation_factor", 1);
  options.stack.deviation = options.factor;  // of a head of its own
  if (facts.flag("tied_scaled")) {
    options.stack.logit_divisor = std::sqrt(static_cast<double>(stack.width));
  }
  return options;
}

std::shared_ptr<Model> make_seq2seq(const Seq2SeqOptions& options, const Inputs& inputs) {
  const TensorSpec* mask = inputs.data.find(kAttentionMask);
  std::vector<std::unique_ptr<block::Block>> blocks;
  auto embed = std::make_unique<SourceEmbed>(options, inputs.weights);
  const SourceEmbed& tokens = *embed;
  blocks.push_back(std::move(embed));
  for (std::int64_t i = 0; i < options.stack.layers; ++i) {
    blocks.push_back(make_seq2seq_layer("encoder.h." + std::to_string(i), i, false, options, mask, inputs.weights));
  }
  blocks.push_back(std::make_unique<EncoderNorm>(options, inputs.weights));
  blocks.push_back(std::make_unique<DecoderEmbed>(options, tokens.token_weight()));
  for (std::int64_t i = 0; i < options.decoder_layers; ++i) {
    blocks.push_back(make_seq2seq_layer("h." + std::to_string(i), i, true, options, mask, inputs.weights));
  }
  blocks.push_back(
      make_head(stream(kDecoderStream, options), inputs.data, options.stack, tokens.token_weight(), inputs.weights));
  auto model = std::make_shared<Model>(std::move(blocks));
  model->set_decoder_start(options.decoder_start);
  return model;
}

}  // namespace components::model
