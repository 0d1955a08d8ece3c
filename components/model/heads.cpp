// B: samples   T: positions   C: features of the stream   V: vocabulary

#include "components/model/heads.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/late_gradient.h"
#include "components/model/stack_pass.h"
#include "components/ops/dropout.h"
#include "components/part/cached/cached.h"
#include "components/part/linear.h"
#include "components/part/norm.h"
#include "components/part/weight.h"
#include "components/tensor/tensors.h"

namespace components::model {
namespace {

/// The last norm and the projection to the vocabulary, whose weight may be the token embedding's.
class VocabularyHead final : public block::BasicBlock {
 public:
  VocabularyHead(const TensorSpec& stream, const StackOptions& options, const at::Tensor& token_weight,
                 part::WeightMaker& weights)
      : BasicBlock("head", stream, {kOutput, Dtype::kFloat32, {kBatch, kTime, options.vocab_size}}, weights),
        tied_(options.tied),
        divisor_(options.logit_divisor),
        cap_(options.logit_cap),
        ln_f_(declared(), "ln_f", norm_of(options)) {
    if (tied_) {
      weight_VC_ = part::Weight(token_weight);
    } else {
      weight_VC_ = part::Weight(parameter(
          add_parameter("head.weight", {options.vocab_size, options.width}, part::normal(options.deviation))));
    }
  }

  void forward(TensorMap& activations) const override {
    write(activations, finished(at::linear(ln_f_.forward(read(activations)), weight_VC_.tensor())));
  }

  /// A cap is of each logit, which the loss in pieces does not ask for.
  bool gives_hidden() const override { return cap_ == 0; }
  void forward_hidden(TensorMap& activations) const override {
    if (!gives_hidden()) return forward(activations);
    const at::Tensor hidden = ln_f_.forward(read(activations));
    activations.set(kHidden, divisor_ == 1.0 ? hidden : hidden / divisor_);
    activations.set(kProjection, tied_ ? with_late_gradient(weight_VC_.tensor()) : weight_VC_.tensor());
  }

  bool decodes() const override { return true; }
  void decode(TensorMap& activations, part::CachedPass& pass) const override {
    write(activations, finished(part::cached_head(read(activations), ln_f_, weight_VC_, pass)));
  }

  std::vector<block::Tie> ties() const override {
    if (!tied_) return {};
    return {{"head.weight", "wte.weight"}};
  }
  std::vector<std::string> lowered_weights() const override { return {tied_ ? "wte.weight" : "head.weight"}; }

  double forward_flops(std::int64_t positions) const override {
    return 2.0 * static_cast<double>(positions) * static_cast<double>(weight_VC_.tensor().numel());
  }

 private:
  at::Tensor finished(at::Tensor logits) const {
    if (divisor_ != 1.0) logits = logits / divisor_;
    return cap_ > 0 ? at::tanh(logits / cap_) * cap_ : logits;
  }

  bool tied_;
  double divisor_, cap_;
  part::Norm ln_f_;
  part::Weight weight_VC_;
};
/// The projection to classes, of each text or of each position.
class ClassHead final : public block::BasicBlock {
 public:
  ClassHead(const TensorSpec& stream, const BatchSpec& data, const StackOptions& options, part::WeightMaker& weights)
      : BasicBlock("head", stream, output_of(options.head), weights),
        options_(options.head),
        ln_f_(declared(), "ln_f", norm_of(options)),
        linear_(declared(), "head",
                {options.width, options.head.classes, part::normal(options.deviation),
                 options.head.bias ? std::make_optional(part::constant(0.0)) : std::nullopt}) {
    if (options_.of != HeadOptions::Of::kTexts) return;
    add_input({kInput, Dtype::kInt64, {kBatch, kTime}, false});
    const TensorSpec* mask = data.find(kAttentionMask);
    reads_mask_ = mask != nullptr;
    if (reads_mask_) add_input(*mask);
  }

  void forward(TensorMap& activations) const override {
    at::Tensor x = read(activations);
    if (options_.of == HeadOptions::Of::kTexts) x = of_last(x, activations);
    x = ln_f_.forward(x);
    const std::optional<Dropout> dropout =
        training() && options_.dropout > 0 ? std::make_optional<Dropout>(options_.dropout, x) : std::nullopt;
    write(activations, linear_.forward(drop(std::move(x), dropout, options_.dropout, 0)));
  }

  double forward_flops(std::int64_t positions) const override {
    const double read = options_.of == HeadOptions::Of::kTexts ? 1.0 : static_cast<double>(positions);
    return 2.0 * read * static_cast<double>(linear_.weight().tensor().numel());
  }

 private:
  static TensorSpec output_of(const HeadOptions& head) {
    if (head.of == HeadOptions::Of::kTexts) return {kOutput, Dtype::kFloat32, {kBatch, head.classes}};
    return {kOutput, Dtype::kFloat32, {kBatch, kTime, head.classes}};
  }

  /// The last position of each text that is no padding, by the mask and by its id; the first where there is none.
  at::Tensor of_last(const at::Tensor& x_BTC, const TensorMap& activations) const {
    const at::Tensor& ids_BT = activations.at(kInput);
    at::Tensor real_BT = reads_mask_ ? activations.at(kAttentionMask).to(at::kBool) : at::Tensor();
    if (options_.padding_id) {
      const at::Tensor other_BT = ids_BT.ne(*options_.padding_id);
      real_BT = real_BT.defined() ? real_BT.bitwise_and(other_BT) : other_BT;
    }
    if (!real_BT.defined()) return x_BTC.select(1, x_BTC.size(1) - 1);
    const at::Tensor last_B = (real_BT.to(at::kLong) * at::arange(ids_BT.size(1), ids_BT.options())).amax(1);
    return x_BTC.gather(1, last_B.view({-1, 1, 1}).expand({-1, 1, x_BTC.size(2)})).squeeze(1);
  }

  HeadOptions options_;
  bool reads_mask_ = false;
  part::Norm ln_f_;
  part::Linear linear_;
};

}  // namespace

std::unique_ptr<block::Block> make_head(const TensorSpec& stream, const BatchSpec& data, const StackOptions& options,
                                        const at::Tensor& token_weight, part::WeightMaker& weights) {
  if (options.head.of == HeadOptions::Of::kVocabulary) {
    return std::make_unique<VocabularyHead>(stream, options, token_weight, weights);
  }
  return std::make_unique<ClassHead>(stream, data, options, weights);
}

}  // namespace components::model
