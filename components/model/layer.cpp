// B: samples   T: positions   C: features of the stream   H: heads   D: features of a head

#include "components/model/layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <optional>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/router_balance.h"
#include "components/model/stack_pass.h"
#include "components/ops/dropout.h"
#include "components/ops/kernel_policy.h"
#include "components/part/branch_norms.h"
#include "components/part/cached/cached.h"
#include "components/part/fused/fused.h"
#include "components/part/mixture.h"
#include "components/part/ragged_attention.h"
#include "components/part/texts.h"
#include "components/tensor/device.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"

namespace components::model {
namespace {

/// Which mask of a block's dropout is for what: attention's weights, and what both branches add to the stream.
enum BlockMask : std::uint32_t { kOfAttention, kOfProjection, kOfMlp };

part::AttentionOptions attention_of(const StackOptions& options, std::int64_t layer) {
  part::AttentionOptions attention = options.attention;
  if (options.scale_by_layer) attention.scale /= static_cast<double>(layer + 1);
  attention.window = options.windows.empty() ? 0 : options.windows[static_cast<std::size_t>(layer)];
  return attention;
}

std::optional<part::Norm> norm_if(bool wanted, part::Declared& declared, const std::string& name,
                                  const StackOptions& options) {
  return wanted ? std::make_optional<part::Norm>(declared, name, norm_of(options)) : std::nullopt;
}

/// The mask, where it changes what a real position of this batch sees. Elsewhere than on the CPU it is not read, and
/// taken. `leaves_out`: whether the stack computes without padding; a plan for the CPU then has nothing padded.
at::Tensor needed_mask(const at::Tensor& mask_BT, bool causal, bool leaves_out) {
  if (mask_BT.is_meta()) return supports_own_kernels(mask_BT) && (causal || leaves_out) ? at::Tensor() : mask_BT;
  if (!mask_BT.is_cpu()) return mask_BT;
  if (!causal) return mask_BT.all().item<bool>() ? at::Tensor() : mask_BT;
  const at::Tensor dense = mask_BT.to(at::kBool).contiguous();
  const auto* const real = dense.const_data_ptr<bool>();
  const std::int64_t positions = dense.size(1);
  for (std::int64_t i = 0; i + 1 < dense.numel(); ++i) {
    if (!real[i] && real[i + 1] && (i + 1) % positions != 0) return mask_BT;
  }
  return {};
}

/// `attend(rows, length)` of each document by itself, one after the other: their rows lie next to each other.
/// rows [B * T, ...]
template <typename Attend>
at::Tensor by_document(const at::Tensor& rows, const at::Tensor& positions_BT, const Attend& attend) {
  const auto* const position = positions_BT.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < positions_BT.numel(); ++i) {
    if (position[i] == 0) lengths.push_back(0);
    ++lengths.back();
  }
  std::vector<at::Tensor> documents = rows.split_with_sizes(lengths, 0);
  for (std::size_t i = 0; i < documents.size(); ++i) documents[i] = attend(documents[i], lengths[i]);
  return at::cat(documents, 0);
}

/// What a branch of the block is made of: one of both, which `options` have for the layer.
std::optional<part::Mlp> mlp_of(part::Declared& declared, const std::string& name, const StackOptions& options,
                                bool wanted) {
  if (!wanted) return std::nullopt;
  return std::make_optional<part::Mlp>(
      declared, name,
      part::MlpOptions{options.width, options.mlp_width, options.activation, options.gated, options.mlp_bias,
                       part::normal(options.deviation), part::normal(options.residual_deviation)});
}

std::optional<part::Mixture> mixture_of(part::Declared& declared, const std::string& name, const StackOptions& options,
                                        bool wanted) {
  if (!wanted) return std::nullopt;
  return std::make_optional<part::Mixture>(
      declared, name,
      part::MixtureOptions{options.width, options.experts.width, options.experts.count, options.experts.chosen,
                           options.experts.normalized, options.activation, part::normal(options.deviation),
                           part::normal(options.residual_deviation)});
}

/// One block.
class Layer final : public block::BasicBlock {
 public:
  Layer(const std::string& name, std::int64_t layer, const TensorSpec& stream, const StackOptions& options,
        std::shared_ptr<const part::Rotation> rotation, const LayerReads& reads, part::WeightMaker& weights)
      : BasicBlock(name, stream, stream, weights),
        number_(static_cast<std::size_t>(layer)),
        dropout_(options.dropout),
        reads_mask_(reads.mask != nullptr),
        reads_positions_(reads.positions != nullptr),
        leaves_out_padding_(leaves_out_padding(options, reads)),
        width_(options.width),
        residual_scale_(options.residual_scale),
        rotation_(std::move(rotation)),
        is_after_sums_(options.norms == NormPlace::kSums),
        ln_1_(norm_if(options.norms != NormPlace::kAfter && (layer > 0 || options.first_norm), declared(),
                      name + ".ln_1", options)),
        attention_(declared(), name + ".attn",
                   {attention_of(options, layer), options.width, options.qkv_bias, options.out_bias,
                    part::normal(options.deviation), part::normal(options.residual_deviation), options.query_norm,
                    options.norm}),
        post_1_(norm_if(has_post(options.norms), declared(), name + ".post_1", options)),
        ln_2_(norm_if(options.norms != NormPlace::kAfter, declared(), name + ".ln_2", options)),
        mlp_(mlp_of(declared(), name + ".mlp", options, !is_mixture(options, layer))),
        mixture_(mixture_of(declared(), name + ".mlp", options, is_mixture(options, layer))),
        balance_(mixture_ && options.experts.balance
                     ? std::make_optional<RouterBalance>(options, layer, reads.padding != nullptr)
                     : std::nullopt),
        post_2_(norm_if(has_post(options.norms), declared(), name + ".post_2", options)) {
    for (const TensorSpec* tensor : {reads.mask, reads.positions}) {
      if (tensor != nullptr) add_input(*tensor);
    }
    if (!balance_) return;
    if (reads.padding != nullptr && reads.mask == nullptr) add_input(*reads.padding);
    if (const auto before = balance_->input()) add_input(*before);
    add_output(balance_->output());
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& x_BTC = read(activations);
    const std::optional<Dropout> dropout =
        training() && (dropout_.attention > 0 || dropout_.residual > 0 || dropout_.mlp > 0)
            ? std::make_optional<Dropout>(dropout_.residual, x_BTC)
            : std::nullopt;
    if (const auto texts = leaves_out_padding_ ? part::noted_texts(activations, x_BTC) : std::nullopt) {
      return write(activations, of_texts(x_BTC, *texts, activations, dropout));
    }
    write(activations, of_rows(x_BTC, activations, dropout));
  }

  bool looks_ahead() const override { return !attention_.options().causal; }
  bool waits_for_device() const override { return mixture_.has_value(); }
  bool decodes() const override { return attention_.options().causal; }
  void decode(TensorMap& activations, part::CachedPass& pass) const override {
    const part::CachedBlock block{
        branch_norms(),  attention_, rotation_.get(), mlp_ ? &*mlp_ : nullptr, mixture_ ? &*mixture_ : nullptr,
        residual_scale_, number_};
    write(activations, part::cached_block(read(activations), block, pass));
  }

  std::vector<NamedTensor> constants() const override {
    if (!rotation_) return {};
    return {{name() + ".cos", rotation_->cos()}, {name() + ".sin", rotation_->sin()}};
  }

  std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> all = BasicBlock::parameters();
    const auto add_terms_of = [&all](const part::Linear& linear) {
      for (const auto& term : linear.all_terms()) all.insert(all.end(), term->tensors().begin(), term->tensors().end());
    };
    add_terms_of(attention_.qkv());
    add_terms_of(attention_.proj());
    if (mixture_) add_terms_of(mixture_->router());
    if (mlp_) {
      add_terms_of(mlp_->fc());
      add_terms_of(mlp_->proj());
    }
    return all;
  }

  std::vector<std::string> lowered_weights() const override {
    if (!mixture_ || mixture_->experts_fc().quantized() != nullptr) return {};
    return {name() + ".mlp_experts_fc.weight", name() + ".mlp_experts_proj.weight"};
  }

  std::vector<part::NamedLinear> linears() override {
    const part::AttentionOptions& o = attention_.options();
    const std::int64_t q = o.heads * o.head, kv = o.kv_heads * o.head;
    std::vector<part::NamedLinear> all = {{name() + ".attn_qkv", &attention_.qkv(), {q, kv, kv}},
                                          {name() + ".attn_proj", &attention_.proj(), {width_}}};
    if (mixture_) {
      all.push_back({name() + ".mlp_router", &mixture_->router(), {mixture_->options().experts}});
    } else {
      const std::int64_t hidden = mlp_->options().hidden;
      const std::vector<std::int64_t> fc = mlp_->options().gated ? std::vector{hidden, hidden} : std::vector{hidden};
      all.push_back({name() + ".mlp_fc", &mlp_->fc(), fc});
      all.push_back({name() + ".mlp_proj", &mlp_->proj(), {width_}});
    }
    return all;
  }

  std::vector<part::NamedExperts> experts() const override {
    if (!mixture_) return {};
    const part::MixtureOptions& o = mixture_->options();
    return {{name() + ".mlp_experts_fc.weight", o.experts, o.width, {o.hidden, o.hidden}},
            {name() + ".mlp_experts_proj.weight", o.experts, o.hidden, {o.width}}};
  }

  std::vector<part::NamedProduct> quantized() override {
    std::vector<part::NamedProduct> all = BasicBlock::quantized();
    if (!mixture_) return all;
    for (const auto& [weight, stack] : {std::pair{".mlp_experts_fc.weight", &mixture_->experts_fc()},
                                        std::pair{".mlp_experts_proj.weight", &mixture_->experts_proj()}}) {
      if (stack->quantized() != nullptr) all.push_back({name() + weight, stack->quantized(), stack->shape()});
    }
    return all;
  }

  void set_training(bool training) override {
    BasicBlock::set_training(training);
    for (const part::NamedProduct& named : quantized()) named.product->set_training(training);
    for (const part::NamedLinear& named : linears()) named.linear->set_training(training);
  }

  /// Without the products of adapters, which are small beside the layers' own.
  double forward_flops(std::int64_t positions) const override {
    const part::AttentionOptions& o = attention_.options();
    const auto t = static_cast<double>(positions), c = static_cast<double>(width_);
    const auto mixed = static_cast<double>(o.heads * o.head),
               qkv = static_cast<double>((o.heads + 2 * o.kv_heads) * o.head);
    const double projections = 2.0 * t * c * (qkv + mixed + outputs_of_mlp());
    const bool narrow = o.window > 0 && o.window < positions;
    const auto w = static_cast<double>(o.window);
    const double behind = narrow ? w * (t - (w - 1.0) / 2.0) : t * (t + 1.0) / 2.0;
    // Pairs of positions. Both ways, a window lies on either side of the position itself.
    const double seen = o.causal ? behind : narrow ? t + 2.0 * (w * t - w * (w + 1.0) / 2.0) : t * t;
    return projections + 2.0 * 2.0 * mixed * seen;  // scores and values
  }

 private:
  static bool is_mixture(const StackOptions& options, std::int64_t layer) {
    return !options.experts.of_layer.empty() && options.experts.of_layer[static_cast<std::size_t>(layer)];
  }

  /// Features that the products of the MLP, or of a position's experts and the router, give or read beside the
  /// stream's.
  double outputs_of_mlp() const {
    if (mixture_) {
      const part::MixtureOptions& o = mixture_->options();
      return static_cast<double>(3 * o.chosen * o.hidden + o.experts);
    }
    return (mlp_->options().gated ? 3.0 : 2.0) * static_cast<double>(mlp_->options().hidden);
  }

  /// What the second branch computes by LibTorch's operations.
  at::Tensor mlp_branch(const at::Tensor& x_BTC, TensorMap& activations) const {
    if (!mixture_) return mlp_->forward(x_BTC);
    const at::Tensor x_NC = x_BTC.flatten(0, -2);
    const part::Routing routing = mixture_->routing(x_NC);
    if (balance_) balance_->add(routing, activations);
    return mixture_->forward(x_NC, routing).view_as(x_BTC);
  }

  /// Of a stream without padding, [1, N, C]. What the fused nodes do not have goes by way of padded rows.
  at::Tensor of_texts(const at::Tensor& x_1NC, const part::Texts& texts, TensorMap& activations,
                      const std::optional<Dropout>& dropout) const {
    const bool drops = dropout && dropout_.attention > 0;
    if (!fused_kernels() || !mlp_ || !has_fused_norms() || !has_usual_attention() ||
        !part::fused_block_fits(x_1NC, attention_, *mlp_, drops, &texts)) {
      return texts.gathered(of_rows(texts.padded_out(x_1NC), activations, dropout));
    }
    const part::NormedLinear qkv = part::fused_norm_linear(x_1NC, norm_in_front(), attention_.qkv());
    // Rows of this mask are counted in each head of a text.
    const at::Tensor mixed =
        part::fused_attention(qkv.out, attention_.qkv().bias(), rotation_.get(), texts, attention_.options(),
                              mask_of(dropout, dropout_.attention, kOfAttention));
    const auto of_places = dropout ? std::make_optional(texts.of_places(*dropout)) : std::nullopt;
    return output_mlp(qkv.stream, mixed, of_places, texts.places);
  }

  /// Of rows of as many positions, [B, T, C].
  at::Tensor of_rows(const at::Tensor& x_BTC, TensorMap& activations, const std::optional<Dropout>& dropout) const {
    const at::Tensor mask_BT =
        reads_mask_ ? needed_mask(activations.at(kAttentionMask), attention_.options().causal, leaves_out_padding_)
                    : at::Tensor();
    const at::Tensor packed_BT = reads_positions_ ? packed_positions(activations.at(kPositions)) : at::Tensor();
    const auto rows = reads_mask_ || reads_positions_ ? part::ragged_rows(activations) : std::nullopt;
    const bool drops = dropout && dropout_.attention > 0;
    const bool fits = fused_kernels() && mlp_ && !mask_BT.defined() && has_fused_norms() &&
                      part::fused_block_fits(x_BTC, attention_, *mlp_, drops, nullptr) &&
                      !(packed_BT.defined() && drops);  // the fused mask goes by places in the row
    const std::optional<Dropout> of_weights =
        dropout && dropout_.attention > 0 ? std::make_optional(dropout->with_rate(dropout_.attention)) : std::nullopt;
    const part::AttentionPass pass{mask_BT,
                                   of_weights,
                                   dropout_.attention,
                                   kOfAttention,
                                   packed_BT.defined() ? &packed_BT : nullptr,
                                   rows ? &*rows : nullptr};
    if (fits) return fused(x_BTC, pass, dropout);
    if (is_after_sums_) return normed_sums(x_BTC, activations, pass, dropout);
    const part::BranchNorms norms = branch_norms();
    const at::Tensor attended = attention_.forward(part::normed(norms.before_attention, x_BTC), rotation_.get(), pass);
    const auto added = [&](const part::Norm* after, const at::Tensor& branch, double rate, std::uint32_t mask) {
      const at::Tensor out = drop(part::normed(after, branch), dropout, rate, mask);
      return residual_scale_ == 1.0 ? out : out * residual_scale_;
    };
    const at::Tensor y_BTC = x_BTC + added(norms.after_attention, attended, dropout_.residual, kOfProjection);
    const at::Tensor out_BTC = mlp_branch(part::normed(norms.before_mlp, y_BTC), activations);
    return y_BTC + added(norms.after_mlp, out_BTC, dropout_.mlp, kOfMlp);
  }

  /// As in BERT: the stream is normed after each branch has been added.
  at::Tensor normed_sums(const at::Tensor& x_BTC, TensorMap& activations, const part::AttentionPass& pass,
                         const std::optional<Dropout>& dropout) const {
    const at::Tensor attended = attention_.forward(x_BTC, rotation_.get(), pass);
    const at::Tensor y_BTC = ln_1_->forward(x_BTC + drop(attended, dropout, dropout_.residual, kOfProjection));
    return ln_2_->forward(y_BTC + drop(mlp_branch(y_BTC, activations), dropout, dropout_.mlp, kOfMlp));
  }

  static bool has_post(NormPlace place) { return place == NormPlace::kAfter || place == NormPlace::kAround; }

  part::BranchNorms branch_norms() const {
    if (is_after_sums_) return {};
    const auto of = [](const std::optional<part::Norm>& norm) { return norm ? &*norm : nullptr; };
    return {of(ln_1_), of(post_1_), of(ln_2_), of(post_2_)};
  }

  /// What the fused block has: the norms of BERT, or those in front of the branches, the first of which may be missing.
  bool has_fused_norms() const {
    const bool fits = is_after_sums_ ? ln_1_ && ln_2_ : ln_2_ && !post_1_ && !post_2_;
    return fits && residual_scale_ == 1.0;
  }

  /// What the fused attention has.
  bool has_usual_attention() const {
    const part::AttentionOptions& o = attention_.options();
    return attention_.q_norm() == nullptr && o.cap == 0 && (rotation_ == nullptr || rotation_->features() == o.head);
  }

  /// The block's two fused nodes, with the fused attention between them or LibTorch's operations.
  at::Tensor fused(const at::Tensor& x_BTC, const part::AttentionPass& pass,
                   const std::optional<Dropout>& dropout) const {
    const part::NormedLinear qkv = part::fused_norm_linear(x_BTC, norm_in_front(), attention_.qkv());
    const auto attend = [&](const at::Tensor& rows, std::int64_t positions) {
      return part::fused_attention(rows, attention_.qkv().bias(), rotation_.get(), positions, attention_.options(),
                                   mask_of(dropout, dropout_.attention, kOfAttention));
    };
    at::Tensor mixed;
    if (!has_usual_attention()) {
      const at::Tensor& bias = attention_.qkv().bias();
      const at::Tensor joint = bias.defined() ? qkv.out + bias.to(qkv.out.scalar_type()) : qkv.out;
      mixed = attention_.mix(joint.view({x_BTC.size(0), x_BTC.size(1), joint.size(1)}), rotation_.get(), pass)
                  .flatten(0, 1)
                  .to(joint.scalar_type());
    } else if (pass.positions != nullptr) {
      mixed = by_document(qkv.out, *pass.positions, attend);
    } else {
      mixed = attend(qkv.out, x_BTC.size(1));
    }
    return output_mlp(qkv.stream, mixed, dropout, {});
  }

  at::Tensor output_mlp(const at::Tensor& stream, const at::Tensor& mixed, const std::optional<Dropout>& dropout,
                        const at::Tensor& rows) const {
    const part::Norm *first = is_after_sums_ ? &*ln_1_ : &*ln_2_, *last = is_after_sums_ ? &*ln_2_ : nullptr;
    return part::fused_output_mlp(
        stream, mixed, attention_.proj(), *first, *mlp_, last,
        {mask_of(dropout, dropout_.residual, kOfProjection), mask_of(dropout, dropout_.mlp, kOfMlp), rows});
  }

  /// Of attention; null: none.
  const part::Norm* norm_in_front() const { return !is_after_sums_ && ln_1_ ? &*ln_1_ : nullptr; }

  static kernels::DropMask mask_of(const std::optional<Dropout>& dropout, double rate, std::uint32_t number) {
    return dropout && rate > 0 ? dropout->with_rate(rate).mask(number) : kernels::DropMask{};
  }

  std::size_t number_;  // among the layers
  StackDropout dropout_;
  bool reads_mask_, reads_positions_, leaves_out_padding_;
  std::int64_t width_;
  double residual_scale_;
  std::shared_ptr<const part::Rotation> rotation_;
  bool is_after_sums_;
  std::optional<part::Norm> ln_1_;
  part::SelfAttention attention_;
  std::optional<part::Norm> post_1_, ln_2_;
  std::optional<part::Mlp> mlp_;          // or:
  std::optional<part::Mixture> mixture_;  // one of both
  std::optional<RouterBalance> balance_;  // of a mixture
  std::optional<part::Norm> post_2_;
};
}  // namespace

bool leaves_out_padding(const StackOptions& options, const LayerReads& reads) {
  const part::AttentionOptions& o = options.attention;
  const bool turns_all = !options.rotary || options.rotary->head == o.head;
  return reads.mask != nullptr && reads.positions == nullptr && !o.causal && !o.alibi && o.cap == 0 &&
         o.head % 2 == 0 && options.query_norm == part::QueryNorm::kNone && turns_all &&
         options.residual_scale == 1.0 && (options.norms == NormPlace::kBefore || options.norms == NormPlace::kSums) &&
         part::of_kernels(options.activation).has_value();
}

std::unique_ptr<block::Block> make_layer(const std::string& name, std::int64_t layer, const TensorSpec& stream,
                                         const StackOptions& options, std::shared_ptr<const part::Rotation> rotation,
                                         const LayerReads& reads, part::WeightMaker& weights) {
  return std::make_unique<Layer>(name, layer, stream, options, std::move(rotation), reads, weights);
}

}  // namespace components::model
