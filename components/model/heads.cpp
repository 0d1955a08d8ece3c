// B: samples   T: positions   C: features of the stream   V: vocabulary

#include "components/model/heads.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/late_gradient.h"
#include "components/model/stack_pass.h"
#include "components/model/text_pool.h"
#include "components/ops/dropout.h"
#include "components/part/activation.h"
#include "components/part/cached/cached.h"
#include "components/part/linear.h"
#include "components/part/norm.h"
#include "components/part/texts.h"
#include "components/part/weight.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::model {
namespace {

part::LinearOptions projection(const StackOptions& options, std::int64_t outputs, bool bias) {
  return {options.width, outputs, part::normal(options.deviation),
          bias ? std::make_optional(part::constant(0.0)) : std::nullopt};
}

/// What a head gives for each position, with zeros for the padding that stream x was computed without.
at::Tensor with_padding(const TensorMap& activations, const at::Tensor& x, const at::Tensor& of_positions) {
  const std::optional<part::Texts> texts = part::noted_texts(activations, x);
  return texts ? texts->padded_out(of_positions) : of_positions;
}

/// What stands before the projection: the norm of the last block's stream, and HeadOptions::dense, as far as the model
/// has them.
class Before {
 public:
  Before(part::Declared& declared, const StackOptions& options) : dense_(options.head.dense) {
    if (options.final_norm) ln_f_.emplace(declared, "ln_f", norm_of(options));
    if (!dense_) return;
    linear_.emplace(declared, "head.dense", projection(options, options.width, dense_->bias));
    if (dense_->norm) norm_.emplace(declared, "head.norm", norm_of(options));
  }

  const part::Norm* ln_f() const { return ln_f_ ? &*ln_f_ : nullptr; }
  at::Tensor normed(const at::Tensor& x) const { return ln_f_ ? ln_f_->forward(x) : x; }
  at::Tensor through_dense(const at::Tensor& x) const {
    if (!linear_) return x;
    const at::Tensor y = part::activate(dense_->activation, linear_->forward(x));
    return norm_ ? norm_->forward(y) : y;
  }
  double flops() const { return linear_ ? linear_->flops() : 0.0; }

 private:
  std::optional<HeadOptions::Dense> dense_;
  std::optional<part::Norm> ln_f_;
  std::optional<part::Linear> linear_;
  std::optional<part::Norm> norm_;
};

/// The projection to the vocabulary, whose weight may be the token embedding's.
class VocabularyHead final : public block::BasicBlock {
 public:
  VocabularyHead(const TensorSpec& stream, const StackOptions& options, const at::Tensor& token_weight,
                 part::WeightMaker& weights)
      : BasicBlock("head", stream, {kOutput, Dtype::kFloat32, {kBatch, kTime, options.vocab_size}}, weights),
        tied_(options.tied),
        decodes_(options.attention.causal),
        divisor_(options.logit_divisor),
        cap_(options.logit_cap),
        dropout_(options.head.dropout),
        before_(declared(), options) {
    if (tied_) {
      weight_VC_ = part::Weight(token_weight);
    } else {
      weight_VC_ = part::Weight(parameter(
          add_parameter("head.weight", {options.vocab_size, options.width}, part::normal(options.deviation))));
    }
    if (options.head.bias) {
      bias_ = part::Weight(parameter(add_parameter("head.bias", {options.vocab_size}, part::constant(0.0))));
    }
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& x = read(activations);
    const at::Tensor hidden = before_.through_dense(dropped(before_.normed(x)));
    write(activations, with_padding(activations, x,
                                    finished(bias_.defined() ? at::linear(hidden, weight_VC_.tensor(), bias_.tensor())
                                                             : at::linear(hidden, weight_VC_.tensor()))));
  }

  /// A cap or a bias is of each logit, which the loss in pieces does not ask for.
  bool gives_hidden() const override { return cap_ == 0 && !bias_.defined(); }
  void forward_hidden(TensorMap& activations) const override {
    if (!gives_hidden()) return forward(activations);
    const at::Tensor& x = read(activations);
    const at::Tensor hidden = with_padding(activations, x, before_.through_dense(dropped(before_.normed(x))));
    activations.set(kHidden, divisor_ == 1.0 ? hidden : hidden / divisor_);
    activations.set(kProjection, tied_ ? with_late_gradient(weight_VC_.tensor()) : weight_VC_.tensor());
  }

  bool decodes() const override { return decodes_; }
  void decode(TensorMap& activations, part::CachedPass& pass) const override {
    RUNNER_ASSERT(decodes_ && before_.ln_f() != nullptr, "a model that generates text is asked with that alone");
    write(activations, finished(part::cached_head(read(activations), *before_.ln_f(), weight_VC_, pass)));
  }

  std::vector<block::Tie> ties() const override {
    if (!tied_) return {};
    return {{"head.weight", "wte.weight"}};
  }
  std::vector<std::string> lowered_weights() const override { return {tied_ ? "wte.weight" : "head.weight"}; }

  double forward_flops(std::int64_t positions) const override {
    return static_cast<double>(positions) * (before_.flops() + 2.0 * static_cast<double>(weight_VC_.tensor().numel()));
  }

 private:
  at::Tensor dropped(const at::Tensor& x) const {
    if (!training() || dropout_ <= 0) return x;
    return drop(x, Dropout(dropout_, x), dropout_, 0);
  }

  at::Tensor finished(at::Tensor logits) const {
    if (divisor_ != 1.0) logits = logits / divisor_;
    return cap_ > 0 ? at::tanh(logits / cap_) * cap_ : logits;
  }

  bool tied_, decodes_;
  double divisor_, cap_, dropout_;
  Before before_;
  part::Weight weight_VC_, bias_;
};

/// The projection to classes, of each text or of each position.
class ClassHead final : public block::BasicBlock {
 public:
  ClassHead(const TensorSpec& stream, const BatchSpec& data, const StackOptions& options, part::WeightMaker& weights)
      : BasicBlock("head", stream, output_of(options.head, data), weights),
        options_(options.head),
        before_(declared(), options),
        linear_(declared(), "head", projection(options, options.head.classes, options.head.bias)) {
    const TensorSpec* mask = data.find(kAttentionMask);
    if (options_.of_choices) {
      choices_.emplace(options_.pool, data);
      for (const TensorSpec& tensor : choices_->reads()) add_input(tensor);
      return;
    }
    if (options_.of != HeadOptions::Of::kTexts || options_.pool == HeadOptions::Pool::kFirst) return;
    if (options_.pool == HeadOptions::Pool::kLast) add_input({kInput, Dtype::kInt64, {kBatch, kTime}, false});
    if (options_.of_pairs) add_input({kRejectedAt, Dtype::kInt64, {kBatch}, false});
    reads_mask_ = mask != nullptr;
    if (reads_mask_) add_input(*mask);
  }

  void forward(TensorMap& activations) const override {
    at::Tensor x = read(activations);
    const std::optional<part::Texts> texts = part::noted_texts(activations, x);
    const bool of_positions = options_.of == HeadOptions::Of::kPositions;
    x = of_positions ? before_.normed(x)
        : choices_   ? choices_->pooled(texts ? texts->padded_out(before_.normed(x)) : before_.normed(x), activations)
                     : pooled(x, texts, activations);
    const bool drops = training() && (options_.first_dropout > 0 || options_.dropout > 0);
    std::optional<Dropout> dropout = drops ? std::make_optional<Dropout>(options_.dropout, x) : std::nullopt;
    if (dropout && texts && of_positions) dropout = texts->of_places(*dropout);
    x = before_.through_dense(drop(std::move(x), dropout, options_.first_dropout, 0));
    x = linear_.forward(drop(std::move(x), dropout, options_.dropout, 1));
    if (texts && of_positions) x = texts->padded_out(x);
    write(activations, options_.of_pairs || choices_ ? x.squeeze(2) : x);
  }

  double forward_flops(std::int64_t positions) const override {
    const double read = options_.of == HeadOptions::Of::kTexts ? 1.0 : static_cast<double>(positions);
    return read * (before_.flops() + linear_.flops());
  }

 private:
  static TensorSpec output_of(const HeadOptions& head, const BatchSpec& data) {
    if (head.of_choices) return {kOutput, Dtype::kFloat32, {kBatch, data.at(kTextsAt).shape[1]}};
    if (head.of_pairs) return {kOutput, Dtype::kFloat32, {kBatch, 2}};
    if (head.of == HeadOptions::Of::kTexts) return {kOutput, Dtype::kFloat32, {kBatch, head.classes}};
    return {kOutput, Dtype::kFloat32, {kBatch, kTime, head.classes}};
  }

  /// Normed. Where one position speaks for a text it is taken first: a norm is of each position by itself.
  at::Tensor pooled(const at::Tensor& x, const std::optional<part::Texts>& texts, const TensorMap& activations) const {
    const auto padded = [&](const at::Tensor& rows) { return texts ? texts->padded_out(rows) : rows; };
    switch (options_.pool) {
      case HeadOptions::Pool::kLast: return before_.normed(of_last(padded(x), activations));
      case HeadOptions::Pool::kFirst: return before_.normed(texts ? texts->first_of_each(x) : x.select(1, 0));
      case HeadOptions::Pool::kMean: break;
    }
    const at::Tensor normed_BTC = padded(before_.normed(x));
    if (!reads_mask_) return normed_BTC.mean(1);
    const at::Tensor real_BT1 = activations.at(kAttentionMask).to(normed_BTC.scalar_type()).unsqueeze(2);
    return (normed_BTC * real_BT1).sum(1) / real_BT1.sum(1);
  }

  /// The last position of each text that is no padding, by the mask and by its id; the first where there is none. Of
  /// pairs [B, 2, C]: that of each of both.
  at::Tensor of_last(const at::Tensor& x_BTC, const TensorMap& activations) const {
    const at::Tensor& ids_BT = activations.at(kInput);
    at::Tensor real_BT = reads_mask_ ? activations.at(kAttentionMask).to(at::kBool) : at::Tensor();
    if (options_.padding_id) {
      const at::Tensor other_BT = ids_BT.ne(*options_.padding_id);
      real_BT = real_BT.defined() ? real_BT.bitwise_and(other_BT) : other_BT;
    }
    if (!real_BT.defined() && !options_.of_pairs) return x_BTC.select(1, x_BTC.size(1) - 1);
    const at::Tensor place_T = at::arange(ids_BT.size(1), ids_BT.options());
    const auto last_of = [&](const at::Tensor& real) { return (real.to(at::kLong) * place_T).amax(1); };
    const auto taken = [&](const at::Tensor& place_BN) {
      return x_BTC.gather(1, place_BN.unsqueeze(2).expand({-1, -1, x_BTC.size(2)}));
    };
    if (!options_.of_pairs) return taken(last_of(real_BT).unsqueeze(1)).squeeze(1);
    const at::Tensor is_chosen_BT = place_T.unsqueeze(0).lt(activations.at(kRejectedAt).unsqueeze(1));
    if (!real_BT.defined()) real_BT = at::ones_like(is_chosen_BT);
    return taken(at::stack({last_of(real_BT.bitwise_and(is_chosen_BT)), last_of(real_BT)}, 1));
  }

  HeadOptions options_;
  bool reads_mask_ = false;
  std::optional<TextPool> choices_;
  Before before_;
  part::Linear linear_;
};

/// A vector of each text, without weights of its own.
class VectorHead final : public block::BasicBlock {
 public:
  VectorHead(const TensorSpec& stream, const BatchSpec& data, const StackOptions& options, part::WeightMaker& weights)
      : BasicBlock("head", stream, output_of(data, options.width), weights),
        normalized_(options.head.normalized),
        before_(declared(), options),
        pool_(options.head.pool, data) {
    for (const TensorSpec& tensor : pool_.reads()) add_input(tensor);
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& x = read(activations);
    at::Tensor vectors = pool_.pooled(with_padding(activations, x, before_.normed(x)), activations);
    if (normalized_) {
      vectors = vectors.to(at::kFloat);
      vectors = vectors / vectors.square().sum({-1}, /*keepdim=*/true).sqrt().clamp_min(kLeastLength);
    }
    write(activations, vectors);
  }

 private:
  static constexpr double kLeastLength = 1e-12;  ///< torch.nn.functional.normalize

  static TensorSpec output_of(const BatchSpec& data, std::int64_t width) {
    const TensorSpec* several = data.find(kTextsAt);
    if (several == nullptr) return {kOutput, Dtype::kFloat32, {kBatch, width}};
    return {kOutput, Dtype::kFloat32, {kBatch, several->shape[1], width}};
  }

  bool normalized_;
  Before before_;
  TextPool pool_;
};

}  // namespace

std::unique_ptr<block::Block> make_head(const TensorSpec& stream, const BatchSpec& data, const StackOptions& options,
                                        const at::Tensor& token_weight, part::WeightMaker& weights) {
  if (options.head.of == HeadOptions::Of::kVocabulary) {
    return std::make_unique<VocabularyHead>(stream, options, token_weight, weights);
  }
  if (options.head.of == HeadOptions::Of::kVectors) {
    return std::make_unique<VectorHead>(stream, data, options, weights);
  }
  return std::make_unique<ClassHead>(stream, data, options, weights);
}

}  // namespace components::model
