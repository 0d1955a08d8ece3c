// B: samples   S: positions of the source   T: positions of the stream   C: features of the stream   N: new positions
// of all sequences

#include "components/model/seq2seq_layer.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/stack_pass.h"
#include "components/ops/dropout.h"
#include "components/part/cached/attention.h"
#include "components/part/cached/cached.h"
#include "components/tensor/tensors.h"

namespace components::model {
namespace {

/// Which mask of a block's dropout is for what.
enum BlockMask : std::uint32_t { kOfAttention, kOfProjection, kOfHidden, kOfMlp, kOfCross, kOfCrossProjection };

TensorSpec bias_spec(bool is_decoder, const Seq2SeqOptions& options) {
  return {is_decoder ? kDecoderBias : kEncoderBias, Dtype::kFloat32, {1, options.relative.heads, kTime, kTime}};
}

TensorSpec stream_spec(const char* name, const Seq2SeqOptions& options) {
  return {name, Dtype::kFloat32, {kBatch, kTime, options.stack.width}};
}

part::RelativeBiasOptions relative_of(bool is_decoder, const Seq2SeqOptions& options) {
  part::RelativeBiasOptions relative = options.relative;
  relative.both_ways = !is_decoder;
  return relative;
}

/// The mask, where it hides anything. Elsewhere than on the CPU it is not read, and taken.
at::Tensor needed_mask(const at::Tensor& mask_BS) {
  return mask_BS.is_cpu() && mask_BS.all().item<bool>() ? at::Tensor() : mask_BS;
}

class Seq2SeqLayer final : public block::BasicBlock {
 public:
  Seq2SeqLayer(const std::string& name, std::int64_t layer, bool is_decoder, const Seq2SeqOptions& options,
               const TensorSpec* mask, part::WeightMaker& weights)
      : BasicBlock(name, stream_spec(is_decoder ? kDecoderStream : kEncoderStream, options),
                   stream_spec(is_decoder ? kDecoderStream : kEncoderStream, options), weights),
        number_(static_cast<std::size_t>(layer)),
        is_decoder_(is_decoder),
        reads_mask_(mask != nullptr),
        width_(options.stack.width),
        dropout_(options.stack.dropout),
        bias_name_(is_decoder ? kDecoderBias : kEncoderBias),
        ln_1_(declared(), name + ".ln_1", norm_of(options.stack)),
        bias_(layer == 0
                  ? std::make_optional<part::RelativeBias>(declared(), name + ".attn_bias",
                                                           relative_of(is_decoder, options), relative_init_of(options))
                  : std::nullopt),
        attention_(declared(), name + ".attn", self_attention_of(options, is_decoder)),
        ln_x_(is_decoder ? std::make_optional<part::Norm>(declared(), name + ".ln_x", norm_of(options.stack))
                         : std::nullopt),
        cross_(is_decoder
                   ? std::make_optional<part::CrossAttention>(declared(), name + ".cross", cross_attention_of(options))
                   : std::nullopt),
        ln_2_(declared(), name + ".ln_2", norm_of(options.stack)),
        mlp_(declared(), name + ".mlp", mlp_of(options)) {
    if (!bias_) add_input(bias_spec(is_decoder, options));
    if (is_decoder) add_input(stream_spec(kEncoded, options));
    if (mask != nullptr) add_input(*mask);
    outputs_ = BasicBlock::outputs();
    const std::int64_t layers = is_decoder ? options.decoder_layers : options.stack.layers;
    if (bias_ && layers > 1) outputs_.push_back(bias_spec(is_decoder, options));  // which the others read
  }

  const std::vector<TensorSpec>& outputs() const override { return outputs_; }

  void forward(TensorMap& activations) const override {
    const at::Tensor x_BTC = read(activations);  // the map grows below
    const bool drops =
        training() && std::max({dropout_.attention, dropout_.residual, dropout_.mlp, dropout_.hidden}) > 0;
    const auto dropout = drops ? std::make_optional<Dropout>(dropout_.residual, x_BTC) : std::nullopt;
    const auto of_weights =
        drops && dropout_.attention > 0 ? std::make_optional(dropout->with_rate(dropout_.attention)) : std::nullopt;
    const std::int64_t positions = x_BTC.size(1);
    if (bias_) activations.set(bias_name_, bias_->forward(0, positions, positions));
    const at::Tensor bias = activations.at(bias_name_);
    const at::Tensor mask_BS = reads_mask_ ? needed_mask(activations.at(kAttentionMask)) : at::Tensor();
    const at::Tensor none;
    part::AttentionPass own{is_decoder_ ? none : mask_BS, of_weights, dropout_.attention, kOfAttention};
    own.bias = &bias;
    at::Tensor y =
        x_BTC + drop(attention_.forward(ln_1_.forward(x_BTC), nullptr, own), dropout, dropout_.residual, kOfProjection);
    if (cross_) {
      const part::AttentionPass pass{mask_BS, of_weights, dropout_.attention, kOfCross};
      y = y + drop(cross_->forward(ln_x_->forward(y), cross_->keys(activations.at(kEncoded)), pass), dropout,
                   dropout_.residual, kOfCrossProjection);
    }
    const at::Tensor hidden =
        drop(mlp_.activated(mlp_.fc().forward(ln_2_.forward(y))), dropout, dropout_.hidden, kOfHidden);
    write(activations, y + drop(mlp_.proj().forward(hidden), dropout, dropout_.mlp, kOfMlp));
  }

  bool looks_ahead() const override { return !is_decoder_; }
  bool encodes() const override { return !is_decoder_; }
  bool decodes() const override { return is_decoder_; }

  void keep_source(const TensorMap& activations, part::KvCache& cache, std::int64_t slot) const override {
    if (!cross_) return;
    part::Keys keys = cross_->keys(activations.at(kEncoded));
    cache.set_source(slot, number_, {keys.k.contiguous(), keys.v.contiguous()});
  }

  void decode(TensorMap& activations, part::CachedPass& pass) const override {
    const at::Tensor x_NC = read(activations);
    if (bias_) activations.set(bias_name_, behind(pass));
    const at::Tensor joint = part::cached_linear(ln_1_.forward(x_NC), attention_.qkv(), pass);
    part::KvCache::Layer& layer = pass.cache.layer(number_, attention_.options(), joint.options(), false);
    const at::Tensor mixed =
        part::attend_cached_plainly(joint, nullptr, attention_, layer, pass, &activations.at(bias_name_));
    at::Tensor y = x_NC + part::cached_linear(mixed, attention_.proj(), pass);
    const at::Tensor q = part::cached_linear(ln_x_->forward(y), cross_->q(), pass);
    y = y + part::cached_linear(part::attend_sources(q, cross_->options(), number_, pass), cross_->proj(), pass);
    const at::Tensor hidden = mlp_.activated(part::cached_linear(ln_2_.forward(y), mlp_.fc(), pass));
    write(activations, y + part::cached_linear(hidden, mlp_.proj(), pass));
  }

  std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> all = BasicBlock::parameters();
    std::vector<const part::Linear*> linears = {&attention_.qkv(), &attention_.proj()};
    if (cross_) linears.insert(linears.end(), {&cross_->q(), &cross_->kv(), &cross_->proj()});
    linears.insert(linears.end(), {&mlp_.fc(), &mlp_.proj()});
    for (const part::Linear* linear : linears) {
      for (const auto& term : linear->all_terms())
        all.insert(all.end(), term->tensors().begin(), term->tensors().end());
    }
    return all;
  }

  std::vector<part::NamedLinear> linears() override {
    const part::AttentionOptions& o = attention_.options();
    const std::int64_t mixed = o.heads * o.head, hidden = mlp_.options().hidden;
    std::vector<part::NamedLinear> all = {{name() + ".attn_qkv", &attention_.qkv(), {mixed, mixed, mixed}},
                                          {name() + ".attn_proj", &attention_.proj(), {width_}}};
    if (cross_) {
      all.push_back({name() + ".cross_q", &cross_->q(), {mixed}});
      all.push_back({name() + ".cross_kv", &cross_->kv(), {mixed, mixed}});
      all.push_back({name() + ".cross_proj", &cross_->proj(), {width_}});
    }
    const std::vector<std::int64_t> fc = mlp_.options().gated ? std::vector{hidden, hidden} : std::vector{hidden};
    all.push_back({name() + ".mlp_" + mlp_.options().fc, &mlp_.fc(), fc});
    all.push_back({name() + ".mlp_proj", &mlp_.proj(), {width_}});
    return all;
  }

  void set_training(bool training) override {
    BasicBlock::set_training(training);
    for (const part::NamedLinear& named : linears()) named.linear->set_training(training);
  }

  /// As if source and target were equally long.
  double forward_flops(std::int64_t positions) const override {
    const part::AttentionOptions& o = attention_.options();
    const auto t = static_cast<double>(positions), c = static_cast<double>(width_);
    const auto mixed = static_cast<double>(o.heads * o.head), hidden = static_cast<double>(mlp_.options().hidden);
    const double attentions = is_decoder_ ? 2.0 : 1.0;
    const double projections = 2.0 * t * c * (4.0 * mixed * attentions + (mlp_.options().gated ? 3.0 : 2.0) * hidden);
    const double seen = is_decoder_ ? t * (t + 1.0) / 2.0 + t * t : t * t;
    return projections + 2.0 * 2.0 * mixed * seen;  // scores and values
  }

 private:
  /// What decode() adds to scores, [H, T].
  at::Tensor behind(const part::CachedPass& pass) const {
    std::int64_t end = 0;
    for (const part::Segment& segment : pass.segments) end = std::max(end, segment.end());
    return bias_->forward(end - 1, 1, end).view({-1, end}).flip(1);
  }

  std::size_t number_;  // among the layers of the decoder
  bool is_decoder_, reads_mask_;
  std::int64_t width_;
  StackDropout dropout_;
  const char* bias_name_;
  std::vector<TensorSpec> outputs_;
  part::Norm ln_1_;
  std::optional<part::RelativeBias> bias_;
  part::SelfAttention attention_;
  std::optional<part::Norm> ln_x_;
  std::optional<part::CrossAttention> cross_;
  part::Norm ln_2_;
  part::Mlp mlp_;
};

}  // namespace

std::unique_ptr<block::Block> make_seq2seq_layer(const std::string& name, std::int64_t layer, bool is_decoder,
                                                 const Seq2SeqOptions& options, const TensorSpec* mask,
                                                 part::WeightMaker& weights) {
  return std::make_unique<Seq2SeqLayer>(name, layer, is_decoder, options, mask, weights);
}

}  // namespace components::model
