// B: samples   T: positions   C: features of the stream   H: heads   D: features of a head   V: vocabulary

#include "components/model/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/late_gradient.h"
#include "components/ops/dropout.h"
#include "components/ops/kernel_policy.h"
#include "components/part/branch_norms.h"
#include "components/part/cached/cached.h"
#include "components/part/embedding.h"
#include "components/part/fused/fused.h"
#include "components/part/ragged_attention.h"
#include "components/tensor/device.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::model {
namespace {

constexpr const char* kStream = "x";  // the residual stream between blocks

/// Which mask of a block's dropout is for what: attention's weights, and what both branches add to the stream.
enum BlockMask : std::uint32_t { kOfAttention, kOfProjection, kOfMlp };

at::Tensor drop(at::Tensor x, const std::optional<Dropout>& dropout, double rate, std::uint32_t mask) {
  return dropout && rate > 0 ? x * dropout->with_rate(rate).factors_like(x, mask) : x;
}

/// kPositions, where a row holds several documents. Elsewhere than on the CPU they are not read, and taken.
at::Tensor packed_positions(const at::Tensor& positions_BT) {
  if (positions_BT.is_meta()) return supports_own_kernels(positions_BT) ? at::Tensor() : positions_BT;
  if (!positions_BT.is_cpu()) return positions_BT;
  const at::Tensor dense = positions_BT.contiguous();
  const auto* const position = dense.const_data_ptr<std::int64_t>();
  const std::int64_t length = dense.size(1);
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    if (position[i] == 0 && i % length != 0) return dense;
  }
  return {};
}

/// ids -> token vectors, plus those of the positions when they are learned.
class Embed final : public block::BasicBlock {
 public:
  Embed(const TensorSpec& ids, const TensorSpec& stream, const DecoderOptions& options, const TensorSpec* positions,
        part::WeightMaker& weights)
      : BasicBlock("embed", ids, stream, weights),
        tied_(options.tied),
        dropout_(options.dropout.embedding),
        scale_(options.embedding_scale),
        wte_(declared(), "wte", options.vocab_size, options.width, part::normal(options.deviation),
             options.padding_id) {
    if (options.learned_positions) {
      wpe_.emplace(declared(), "wpe", options.positions, options.width, part::normal(options.deviation));
      if (positions != nullptr) add_input(*positions);
    }
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& ids_BT = read(activations);
    // Where the head has the same weight, a sparse gradient is added to its dense one without filling a second one.
    // Only the CPU does that in a fixed order.
    at::Tensor x_BTC = scaled(wte_.forward(ids_BT, tied_ && training() && supports_own_kernels(wte_.weight())));
    if (wpe_) {
      const bool reads_positions = inputs().size() > 1;
      at::Tensor packed_BT = reads_positions ? packed_positions(activations.at(kPositions)) : at::Tensor();
      // Without values nothing says whether a row is packed.
      if (reads_positions && ids_BT.is_meta()) packed_BT = activations.at(kPositions);
      // A row of several documents may be longer than any of them.
      RUNNER_ASSERT(packed_BT.defined() || ids_BT.size(1) <= wpe_->weight().size(0),
                    "sequences are cut to max_seq_len, which was compared");
      x_BTC = x_BTC + (packed_BT.defined() ? wpe_->forward(packed_BT) : wpe_->first(ids_BT.size(1)));
    }
    const std::optional<Dropout> dropout =
        training() && dropout_ > 0 ? std::make_optional<Dropout>(dropout_, x_BTC) : std::nullopt;
    write(activations, drop(std::move(x_BTC), dropout, dropout_, 0));
  }

  bool decodes() const override { return true; }
  void decode(TensorMap& activations, part::CachedPass& pass) const override {
    at::Tensor x_NC = scaled(wte_.forward(read(activations))).to(at::kFloat);
    if (wpe_) {
      std::vector<std::int64_t> positions;
      for (const part::Segment& segment : pass.segments) {
        for (std::int64_t p = segment.first; p < segment.end(); ++p) positions.push_back(p);
      }
      const at::Tensor& table = wpe_->weight();
      x_NC = x_NC + table.index_select(0, at::tensor(positions, at::kLong).to(table.device())).to(at::kFloat);
    }
    write(activations, x_NC);
  }

  std::vector<std::string> lowered_weights() const override { return {"wte.weight"}; }

  const at::Tensor& token_weight() const { return wte_.weight(); }

 private:
  at::Tensor scaled(const at::Tensor& x) const { return scale_ == 1.0 ? x : x * scale_; }

  bool tied_;
  double dropout_, scale_;
  part::Embedding wte_;
  std::optional<part::Embedding> wpe_;
};

part::AttentionOptions attention_of(const DecoderOptions& options, std::int64_t layer) {
  part::AttentionOptions attention = options.attention;
  if (options.scale_by_layer) attention.scale /= static_cast<double>(layer + 1);
  attention.window = options.windows.empty() ? 0 : options.windows[static_cast<std::size_t>(layer)];
  return attention;
}

part::NormOptions norm_of(const DecoderOptions& options) {
  part::NormOptions norm = options.norm;
  norm.width = options.width;
  return norm;
}

std::optional<part::Norm> norm_if(bool wanted, part::Declared& declared, const std::string& name,
                                  const DecoderOptions& options) {
  return wanted ? std::make_optional<part::Norm>(declared, name, norm_of(options)) : std::nullopt;
}

/// The mask, where it changes what a real position of this batch sees. Elsewhere than on the CPU it is not read, and
/// taken.
at::Tensor needed_mask(const at::Tensor& mask_BT) {
  if (mask_BT.is_meta()) return supports_own_kernels(mask_BT) ? at::Tensor() : mask_BT;
  if (!mask_BT.is_cpu()) return mask_BT;
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

/// Optional tensors of a batch that blocks read, where they change something; null: not read.
struct LayerReads {
  const TensorSpec *mask, *positions;
};

/// One block.
class Layer final : public block::BasicBlock {
 public:
  Layer(const std::string& name, std::int64_t layer, const TensorSpec& stream, const DecoderOptions& options,
        std::shared_ptr<const part::Rotation> rotation, const LayerReads& reads, part::WeightMaker& weights)
      : BasicBlock(name, stream, stream, weights),
        number_(static_cast<std::size_t>(layer)),
        dropout_(options.dropout),
        reads_mask_(reads.mask != nullptr),
        reads_positions_(reads.positions != nullptr),
        width_(options.width),
        residual_scale_(options.residual_scale),
        rotation_(std::move(rotation)),
        ln_1_(norm_if(options.norms != NormPlace::kAfter, declared(), name + ".ln_1", options)),
        attention_(declared(), name + ".attn",
                   {attention_of(options, layer), options.width, options.qkv_bias, options.out_bias,
                    part::normal(options.deviation), part::normal(options.residual_deviation), options.query_norm,
                    options.norm}),
        post_1_(norm_if(options.norms != NormPlace::kBefore, declared(), name + ".post_1", options)),
        ln_2_(norm_if(options.norms != NormPlace::kAfter, declared(), name + ".ln_2", options)),
        mlp_(declared(), name + ".mlp",
             {options.width, options.mlp_width, options.activation, options.gated, options.mlp_bias,
              part::normal(options.deviation), part::normal(options.residual_deviation)}),
        post_2_(norm_if(options.norms != NormPlace::kBefore, declared(), name + ".post_2", options)) {
    for (const TensorSpec* tensor : {reads.mask, reads.positions}) {
      if (tensor != nullptr) add_input(*tensor);
    }
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& x_BTC = read(activations);
    const std::optional<Dropout> dropout = training() && (dropout_.attention > 0 || dropout_.residual > 0)
                                               ? std::make_optional<Dropout>(dropout_.residual, x_BTC)
                                               : std::nullopt;
    const at::Tensor mask_BT = reads_mask_ ? needed_mask(activations.at(kAttentionMask)) : at::Tensor();
    const at::Tensor packed_BT = reads_positions_ ? packed_positions(activations.at(kPositions)) : at::Tensor();
    const auto rows = reads_mask_ || reads_positions_ ? part::ragged_rows(activations) : std::nullopt;
    const bool drops = dropout && dropout_.attention > 0;
    const part::BranchNorms norms = branch_norms();
    const bool fits = !mask_BT.defined() && norms.are_before() && residual_scale_ == 1.0 &&
                      part::fused_block_fits(x_BTC, attention_, mlp_, drops) &&
                      !(packed_BT.defined() && drops);  // the fused mask goes by places in the row
    const std::optional<Dropout> of_weights =
        dropout && dropout_.attention > 0 ? std::make_optional(dropout->with_rate(dropout_.attention)) : std::nullopt;
    const part::AttentionPass pass{mask_BT,
                                   of_weights,
                                   dropout_.attention,
                                   kOfAttention,
                                   packed_BT.defined() ? &packed_BT : nullptr,
                                   rows ? &*rows : nullptr};
    if (fused_kernels() && fits) return write(activations, fused(x_BTC, pass, dropout));
    const at::Tensor attended = attention_.forward(part::normed(norms.before_attention, x_BTC), rotation_.get(), pass);
    const auto added = [&](const part::Norm* after, const at::Tensor& branch, std::uint32_t mask) {
      const at::Tensor out = drop(part::normed(after, branch), dropout, dropout_.residual, mask);
      return residual_scale_ == 1.0 ? out : out * residual_scale_;
    };
    const at::Tensor y_BTC = x_BTC + added(norms.after_attention, attended, kOfProjection);
    const at::Tensor out_BTC = mlp_.forward(part::normed(norms.before_mlp, y_BTC));
    write(activations, y_BTC + added(norms.after_mlp, out_BTC, kOfMlp));
  }

  bool decodes() const override { return true; }
  void decode(TensorMap& activations, part::CachedPass& pass) const override {
    const part::CachedBlock block{branch_norms(), attention_, rotation_.get(), mlp_, residual_scale_, number_};
    write(activations, part::cached_block(read(activations), block, pass));
  }

  std::vector<NamedTensor> constants() const override {
    if (!rotation_) return {};
    return {{name() + ".cos", rotation_->cos()}, {name() + ".sin", rotation_->sin()}};
  }

  std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> all = BasicBlock::parameters();
    for (const part::Linear* linear : {&attention_.qkv(), &attention_.proj(), &mlp_.fc(), &mlp_.proj()}) {
      for (const auto& term : linear->all_terms())
        all.insert(all.end(), term->tensors().begin(), term->tensors().end());
    }
    return all;
  }

  std::vector<part::NamedLinear> linears() override {
    const part::AttentionOptions& o = attention_.options();
    const std::int64_t q = o.heads * o.head, kv = o.kv_heads * o.head, hidden = mlp_.options().hidden;
    const std::vector<std::int64_t> fc = mlp_.options().gated ? std::vector{hidden, hidden} : std::vector{hidden};
    return {{name() + ".attn_qkv", &attention_.qkv(), {q, kv, kv}},
            {name() + ".attn_proj", &attention_.proj(), {width_}},
            {name() + ".mlp_fc", &mlp_.fc(), fc},
            {name() + ".mlp_proj", &mlp_.proj(), {width_}}};
  }

  void set_training(bool training) override {
    BasicBlock::set_training(training);
    for (const part::NamedLinear& named : linears()) {
      for (const auto& term : named.linear->all_terms()) term->set_training(training);
    }
  }

  /// Without the products of adapters, which are small beside the layers' own.
  double forward_flops(std::int64_t positions) const override {
    const part::AttentionOptions& o = attention_.options();
    const auto t = static_cast<double>(positions), c = static_cast<double>(width_);
    const auto mixed = static_cast<double>(o.heads * o.head),
               qkv = static_cast<double>((o.heads + 2 * o.kv_heads) * o.head);
    const auto hidden = static_cast<double>(mlp_.options().hidden);
    const double projections = 2.0 * t * c * (qkv + mixed + (mlp_.options().gated ? 3.0 : 2.0) * hidden);
    const double seen = o.window > 0 && o.window < positions
                            ? static_cast<double>(o.window) * (t - (static_cast<double>(o.window) - 1.0) / 2.0)
                            : t * (t + 1.0) / 2.0;  // pairs of positions
    return projections + 2.0 * 2.0 * mixed * seen;  // scores and values
  }

 private:
  part::BranchNorms branch_norms() const {
    const auto of = [](const std::optional<part::Norm>& norm) { return norm ? &*norm : nullptr; };
    return {of(ln_1_), of(post_1_), of(ln_2_), of(post_2_)};
  }

  /// What the fused attention has.
  bool has_usual_attention() const {
    const part::AttentionOptions& o = attention_.options();
    return attention_.q_norm() == nullptr && o.cap == 0 && (rotation_ == nullptr || rotation_->features() == o.head);
  }

  /// The block's two fused nodes, with the fused attention between them or LibTorch's operations.
  at::Tensor fused(const at::Tensor& x_BTC, const part::AttentionPass& pass,
                   const std::optional<Dropout>& dropout) const {
    const auto mask = [&](double rate, std::uint32_t number) {
      return dropout && rate > 0 ? dropout->with_rate(rate).mask(number) : kernels::DropMask{};
    };
    const part::NormedLinear qkv = part::fused_norm_linear(x_BTC, *ln_1_, attention_.qkv());
    const auto attend = [&](const at::Tensor& rows, std::int64_t positions) {
      return part::fused_attention(rows, attention_.qkv().bias(), rotation_.get(), positions, attention_.options(),
                                   mask(dropout_.attention, kOfAttention));
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
    return part::fused_output_mlp(qkv.stream, mixed, attention_.proj(), *ln_2_, mlp_,
                                  {mask(dropout_.residual, kOfProjection), mask(dropout_.residual, kOfMlp)});
  }

  std::size_t number_;  // among the layers
  DecoderDropout dropout_;
  bool reads_mask_, reads_positions_;
  std::int64_t width_;
  double residual_scale_;
  std::shared_ptr<const part::Rotation> rotation_;
  std::optional<part::Norm> ln_1_;
  part::SelfAttention attention_;
  std::optional<part::Norm> post_1_, ln_2_;
  part::Mlp mlp_;
  std::optional<part::Norm> post_2_;
};

/// The last norm and the projection to the vocabulary, whose weight may be the token embedding's.
class Head final : public block::BasicBlock {
 public:
  Head(const TensorSpec& stream, const TensorSpec& logits, const DecoderOptions& options, const Embed& embed,
       part::WeightMaker& weights)
      : BasicBlock("head", stream, logits, weights),
        tied_(options.tied),
        divisor_(options.logit_divisor),
        cap_(options.logit_cap),
        ln_f_(declared(), "ln_f", norm_of(options)) {
    if (tied_) {
      weight_VC_ = part::Weight(embed.token_weight());
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

/// The location of the key if it was written, else of the block.
const runner::core::Location& location_of(const runner::core::Node& block, const char* key) {
  const runner::core::Node* node = block.find(key);
  return node != nullptr && !node->is_null() ? node->location() : block.location();
}

/// A size from the recipe, or else from the data; an error if the data need more than the recipe sets, or have none.
std::int64_t settle_size(const char* model, const char* key, std::optional<std::int64_t> written, std::int64_t of_data,
                         const std::string& what_data_has, const std::string& hint, const Inputs& inputs) {
  if (!written && of_data <= 0) {
    inputs.diagnostics.error(inputs.block.location(), std::string(model) + " cannot derive " + key + " from this data",
                             std::string("set ") + key);
    return 0;
  }
  if (written && *written < of_data) {
    inputs.diagnostics.error(location_of(inputs.block, key),
                             std::string(key) + " is " + std::to_string(*written) + ", but the data " + what_data_has,
                             hint);
    return 0;
  }
  return written.value_or(of_data);
}

/// False, and an error, when a document would not be in a row what it is alone.
bool fits_packing(const part::Rotation* rotation, const Inputs& inputs) {
  const std::int64_t length = inputs.data.max_length();
  if (rotation == nullptr || !rotation->depends_on_length(length)) return true;
  inputs.diagnostics.error(
      inputs.block.location(),
      "the model's rotary positions go by the length of a row (dynamic scaling or longrope), and rows of " +
          std::to_string(length) + " ids with several texts are longer than it was trained on",
      "set a smaller max_seq_len, or remove packing where it is set");
  return false;
}

}  // namespace

std::int64_t positions_of(const BatchSpec& data) {
  const TensorSpec* positions = data.find(kPositions);
  return (positions != nullptr ? *positions : data.at(kInput)).max_length;
}

std::optional<DecoderSizes> settle_decoder_sizes(const char* model, std::optional<std::int64_t> vocab_size,
                                                 const char* positions_key, std::optional<std::int64_t> positions,
                                                 const Inputs& inputs) {
  const TensorSpec& input = inputs.data.at(kInput);
  if (input.dtype != Dtype::kInt64 || input.shape.size() != 2) {
    inputs.diagnostics.error(inputs.block.location(),
                             std::string(model) + " reads ids, int64 [batch, time], but the data is " + to_text(input),
                             "use data of text, or a model for features such as mlp");
    return std::nullopt;
  }
  const std::string ids = std::to_string(input.vocab_size), length = std::to_string(positions_of(inputs.data));
  const std::string key = positions_key;
  DecoderSizes sizes{};
  sizes.vocab_size = settle_size(model, "vocab_size", vocab_size, input.vocab_size, "has " + ids + " distinct ids",
                                 "set vocab_size to " + ids + " or leave it out", inputs);
  sizes.positions =
      settle_size(model, positions_key, positions, positions_of(inputs.data), "has sequences of max_seq_len " + length,
                  "set " + key + " to " + length + " or leave it out", inputs);
  if (sizes.vocab_size == 0 || sizes.positions == 0) return std::nullopt;
  return sizes;
}

std::shared_ptr<Model> make_decoder(const DecoderOptions& options, const Inputs& inputs) {
  const TensorSpec ids{kInput, Dtype::kInt64, {kBatch, kTime}, false};
  const TensorSpec stream{kStream, Dtype::kFloat32, {kBatch, kTime, options.width}};
  const TensorSpec logits{kOutput, Dtype::kFloat32, {kBatch, kTime, options.vocab_size}};
  const auto rotation_of = [&](const std::optional<part::RotaryOptions>& rotary) {
    return rotary ? std::make_shared<const part::Rotation>(*rotary, options.positions, inputs.weights.meta()) : nullptr;
  };
  const std::shared_ptr<const part::Rotation> rotation = rotation_of(options.rotary);
  const std::shared_ptr<const part::Rotation> local = rotation_of(options.local_rotary);
  // No position looks at later ones: padding at the end changes nothing.
  const TensorSpec* mask = inputs.data.find(kAttentionMask);
  if (mask != nullptr && !mask->scattered) mask = nullptr;
  const LayerReads reads{mask, inputs.data.find(kPositions)};
  if (reads.positions != nullptr && !(fits_packing(rotation.get(), inputs) && fits_packing(local.get(), inputs))) {
    return nullptr;
  }
  std::vector<std::unique_ptr<block::Block>> blocks;
  auto embed = std::make_unique<Embed>(ids, stream, options, reads.positions, inputs.weights);
  const Embed& tokens = *embed;
  blocks.push_back(std::move(embed));
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_local = local != nullptr && !options.windows.empty() && options.windows[at] > 0;
    const bool turns = options.rotated.empty() || options.rotated[at];
    blocks.push_back(std::make_unique<Layer>("h." + std::to_string(i), i, stream, options,
                                             !turns     ? nullptr
                                             : is_local ? local
                                                        : rotation,
                                             reads, inputs.weights));
  }
  blocks.push_back(std::make_unique<Head>(stream, logits, options, tokens, inputs.weights));
  return std::make_shared<Model>(std::move(blocks));
}

}  // namespace components::model
