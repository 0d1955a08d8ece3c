// B: samples   T: positions   C: n_embd   H: heads   D: features of a head   V: vocabulary

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/promote_types.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/triu.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/fused_transformer.h"
#include "components/model/late_gradient.h"
#include "components/model/model.h"
#include "components/ops/bf16_weight_cache.h"
#include "components/ops/dropout.h"
#include "components/ops/kernel_policy.h"
#include "components/tensor/device.h"
#include "components/tensor/tensors.h"
#include "generated/model/gpt.h"  // Config; declares make()
#include "runner/core/error.h"

namespace components::model::gpt {
namespace {

constexpr double kLayerNormEps = 1e-5;
constexpr double kInitialDeviation = 0.02;
constexpr const char* kStream = "x";  // the residual stream between blocks

/// The configuration, completed from the data.
struct Shape {
  std::int64_t n_layer, n_head, n_embd, vocab_size, n_positions;
};

/// cos and sin of every position's angles, [n_positions, 1, D / 2]; shared by the blocks, computed at each start.
struct Rotation {
  at::Tensor cos_T1D, sin_T1D;
};

/// A linear layer or layer norm inside a block: positions of its parameters there.
struct Affine {
  std::size_t weight;
  std::optional<std::size_t> bias;
};

class GptBlock : public block::BasicBlock {
 public:
  GptBlock(std::string name, TensorSpec input, TensorSpec output, const Config& config, bool meta)
      : block::BasicBlock(std::move(name), std::move(input), std::move(output)),
        dropout_(config.dropout),
        with_bias_(config.bias),
        meta_(meta) {}

 protected:
  Affine add_linear(const std::string& full_name, std::int64_t in, std::int64_t out, double deviation) {
    const std::int64_t weight_shape[] = {out, in};
    return {add_parameter(full_name + ".weight", block::normal_parameter(weight_shape, deviation, meta_)),
            add_bias(full_name, out)};
  }

  Affine add_layer_norm(const std::string& full_name, std::int64_t width) {
    const std::int64_t shape[] = {width};
    return {add_parameter(full_name + ".weight", block::constant_parameter(shape, 1.0, meta_)),
            add_bias(full_name, width)};
  }

  const at::Tensor& weight(const Affine& layer) const { return parameter(layer.weight); }
  const at::Tensor& bias(const Affine& layer) const {
    static const at::Tensor none;
    return layer.bias ? parameter(*layer.bias) : none;
  }

  at::Tensor linear(const Affine& layer, const at::Tensor& x) const {
    return layer.bias ? at::linear(x, parameter(layer.weight), parameter(*layer.bias))
                      : at::linear(x, parameter(layer.weight));
  }

  at::Tensor layer_norm(const Affine& norm, const at::Tensor& x_BTC) const {
    const at::Tensor& weight = parameter(norm.weight);
    return norm.bias ? at::layer_norm(x_BTC, weight.sizes(), weight, parameter(*norm.bias), kLayerNormEps)
                     : at::layer_norm(x_BTC, weight.sizes(), weight, {}, kLayerNormEps);
  }

  bool drops() const { return training() && dropout_ > 0.0; }
  double dropout() const { return dropout_; }
  /// What the pass that reads `x` leaves out.
  std::optional<Dropout> draw_dropout(const at::Tensor& x) const {
    return drops() ? std::make_optional<Dropout>(dropout_, x) : std::nullopt;
  }
  static at::Tensor drop(at::Tensor x, const std::optional<Dropout>& dropout, std::uint32_t mask) {
    return dropout ? x * dropout->factors_like(x, mask) : x;
  }
  bool meta() const { return meta_; }

 private:
  std::optional<std::size_t> add_bias(const std::string& full_name, std::int64_t width) {
    if (!with_bias_) return std::nullopt;
    const std::int64_t shape[] = {width};
    return add_parameter(full_name + ".bias", block::constant_parameter(shape, 0.0, meta_));
  }

  double dropout_;
  bool with_bias_, meta_;
};

/// ids -> token vectors, plus those of the positions when they are learned.
class Embed final : public GptBlock {
 public:
  Embed(const TensorSpec& ids, const TensorSpec& stream, const Config& config, const Shape& shape, bool meta)
      : GptBlock("embed", ids, stream, config, meta),
        learned_positions_(config.positions == Positions::kLearned),
        tied_(config.tie_embeddings),
        n_positions_(shape.n_positions) {
    const std::int64_t wte[] = {shape.vocab_size, shape.n_embd};
    add_parameter("wte.weight", block::normal_parameter(wte, kInitialDeviation, meta));
    if (learned_positions_) {
      const std::int64_t wpe[] = {shape.n_positions, shape.n_embd};
      add_parameter("wpe.weight", block::normal_parameter(wpe, kInitialDeviation, meta));
    }
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& ids_BT = read(activations);
    const std::int64_t positions = ids_BT.size(1);
    RUNNER_ASSERT(positions <= n_positions_, "sequences are cut to max_seq_len, which was compared with n_positions");
    // Where the head has the same weight, a sparse gradient is added to its dense one without filling a second one.
    // Only the CPU does that in a fixed order.
    at::Tensor x_BTC = at::embedding(parameter(0), ids_BT, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false,
                                     /*sparse=*/tied_ && training() && supports_own_kernels(parameter(0)));
    if (learned_positions_) {
      const at::Tensor& wpe_TC = parameter(1);
      x_BTC = x_BTC + (positions == n_positions_ ? wpe_TC : wpe_TC.narrow(0, 0, positions));
    }
    const std::optional<Dropout> dropout = draw_dropout(x_BTC);
    write(activations, drop(std::move(x_BTC), dropout, 0));
  }

  const at::Tensor& token_weight() const { return parameter(0); }

 private:
  bool learned_positions_, tied_;
  std::int64_t n_positions_;
};

/// Turns each head's features by its position: the two halves against each other.
at::Tensor rotate(const at::Tensor& x_BTHD, const Rotation& rotation, std::int64_t positions) {
  const at::Tensor cos_T1D = rotation.cos_T1D.narrow(0, 0, positions);
  const at::Tensor sin_T1D = rotation.sin_T1D.narrow(0, 0, positions);
  const std::int64_t half = x_BTHD.size(-1) / 2;
  const at::Tensor a = x_BTHD.narrow(-1, 0, half), b = x_BTHD.narrow(-1, half, half);
  return at::cat({a * cos_T1D - b * sin_T1D, b * cos_T1D + a * sin_T1D}, -1);
}

/// Causal attention that leaves weights out, by plain operations, in float32 at least; LibTorch's own draws its masks.
at::Tensor attend_with_dropout(const at::Tensor& q_BHTD, const at::Tensor& k_BHTD, const at::Tensor& v_BHTD,
                               const Dropout& dropout) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  const auto type = at::promote_types(q_BHTD.scalar_type(), at::kFloat);
  const std::int64_t positions = q_BHTD.size(2);
  const at::Tensor scaled_BHTD = q_BHTD.to(type) / std::sqrt(static_cast<double>(q_BHTD.size(3)));
  const at::Tensor future_TT = at::ones({positions, positions}, q_BHTD.options().dtype(at::kBool)).triu(1);
  at::Tensor scores_BHTT = at::matmul(scaled_BHTD, k_BHTD.to(type).transpose(2, 3));
  scores_BHTT.masked_fill_(future_TT, -std::numeric_limits<double>::infinity());
  const at::Tensor weights_BHTT = at::softmax(scores_BHTT, -1);
  const at::Tensor dropped_BHTT = weights_BHTT * dropout.factors_like(weights_BHTT, kOfAttention);
  return at::matmul(dropped_BHTT, v_BHTD.to(type)).to(q_BHTD.scalar_type());
}

/// One pre-norm transformer block.
class Transformer final : public GptBlock {
 public:
  Transformer(const std::string& name, const TensorSpec& stream, const Config& config, const Shape& shape,
              std::shared_ptr<const Rotation> rotation, bool meta)
      : GptBlock(name, stream, stream, config, meta),
        n_head_(shape.n_head),
        n_embd_(shape.n_embd),
        rotation_(std::move(rotation)) {
    // Residual branches add up over depth, so their last projections start smaller (GPT-2).
    const double residual = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(shape.n_layer));
    ln_1_ = add_layer_norm(name + ".ln_1", n_embd_);
    attn_qkv_ = add_linear(name + ".attn_qkv", n_embd_, 3 * n_embd_, kInitialDeviation);
    attn_proj_ = add_linear(name + ".attn_proj", n_embd_, n_embd_, residual);
    ln_2_ = add_layer_norm(name + ".ln_2", n_embd_);
    mlp_fc_ = add_linear(name + ".mlp_fc", n_embd_, 4 * n_embd_, kInitialDeviation);
    mlp_proj_ = add_linear(name + ".mlp_proj", 4 * n_embd_, n_embd_, residual);
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& x_BTC = read(activations);
    const std::optional<Dropout> dropout = draw_dropout(x_BTC);
    if (fused_kernels() && fused_transformer_fits(x_BTC, weight(attn_qkv_), n_head_)) {
      return write(activations, fused(x_BTC, dropout));
    }
    const at::Tensor mixed_BTC = attention(layer_norm(ln_1_, x_BTC), dropout);
    const at::Tensor y_BTC = x_BTC + drop(linear(attn_proj_, mixed_BTC), dropout, kOfProjection);
    const at::Tensor hidden = at::gelu(linear(mlp_fc_, layer_norm(ln_2_, y_BTC)), "tanh");
    write(activations, y_BTC + drop(linear(mlp_proj_, hidden), dropout, kOfMlp));
  }

  std::vector<NamedTensor> constants() const override {
    if (!rotation_) return {};
    return {{name() + ".cos", rotation_->cos_T1D}, {name() + ".sin", rotation_->sin_T1D}};
  }

  double forward_flops(std::int64_t positions) const override {
    const double t = static_cast<double>(positions), c = static_cast<double>(n_embd_);
    const double projections = 2.0 * t * 12.0 * c * c;
    const double attention = 2.0 * 2.0 * c * t * (t + 1.0) / 2.0;  // scores and values of the causal half
    return projections + attention;
  }

 private:
  at::Tensor fused(const at::Tensor& x_BTC, const std::optional<Dropout>& dropout) const {
    const TransformerWeights weights{weight(ln_1_),      bias(ln_1_),      weight(attn_qkv_), bias(attn_qkv_),
                                     weight(attn_proj_), bias(attn_proj_), weight(ln_2_),     bias(ln_2_),
                                     weight(mlp_fc_),    bias(mlp_fc_),    weight(mlp_proj_), bias(mlp_proj_),
                                     attn_qkv_low_,      attn_proj_low_,   mlp_fc_low_,       mlp_proj_low_};
    static const at::Tensor none;
    return fused_transformer(x_BTC, weights, {n_head_, kLayerNormEps}, rotation_ ? rotation_->cos_T1D : none,
                             rotation_ ? rotation_->sin_T1D : none, dropout);
  }

  at::Tensor attention(const at::Tensor& x_BTC, const std::optional<Dropout>& dropout) const {
    const std::int64_t batch = x_BTC.size(0), positions = x_BTC.size(1), head = n_embd_ / n_head_;
    const at::Tensor qkv = linear(attn_qkv_, x_BTC).view({batch, positions, 3, n_head_, head});
    // Split along the third dimension: a single copy concatenates the gradients.
    const std::vector<at::Tensor> parts = qkv.unbind(2);
    at::Tensor q_BTHD = parts[0], k_BTHD = parts[1];
    const at::Tensor& v_BTHD = parts[2];
    if (rotation_) {
      q_BTHD = rotate(q_BTHD, *rotation_, positions).to(v_BTHD.scalar_type());
      k_BTHD = rotate(k_BTHD, *rotation_, positions).to(v_BTHD.scalar_type());
    }
    const at::Tensor q_BHTD = q_BTHD.transpose(1, 2), k_BHTD = k_BTHD.transpose(1, 2), v_BHTD = v_BTHD.transpose(1, 2);
    const bool own_masks = dropout && supports_own_kernels(x_BTC);
    const at::Tensor mixed_BHTD =
        own_masks ? attend_with_dropout(q_BHTD, k_BHTD, v_BHTD, *dropout)
                  : at::scaled_dot_product_attention(q_BHTD, k_BHTD, v_BHTD, {}, dropout ? this->dropout() : 0.0,
                                                     /*is_causal=*/true);
    return mixed_BHTD.transpose(1, 2).reshape({batch, positions, n_embd_});
  }

  std::int64_t n_head_, n_embd_;
  std::shared_ptr<const Rotation> rotation_;
  Affine ln_1_, attn_qkv_, attn_proj_, ln_2_, mlp_fc_, mlp_proj_;
  mutable Bf16WeightCache attn_qkv_low_, attn_proj_low_, mlp_fc_low_, mlp_proj_low_;
};

/// The last norm and the projection to the vocabulary, whose weight may be the token embedding's.
class Head final : public GptBlock {
 public:
  Head(const TensorSpec& stream, const TensorSpec& logits, const Config& config, const Shape& shape, const Embed& embed,
       bool meta)
      : GptBlock("head", stream, logits, config, meta),
        n_embd_(shape.n_embd),
        vocab_size_(shape.vocab_size),
        tied_(config.tie_embeddings) {
    ln_f_ = add_layer_norm("ln_f", n_embd_);
    if (tied_) {
      weight_VC_ = embed.token_weight();
    } else {
      const std::int64_t weight[] = {vocab_size_, n_embd_};
      weight_VC_ = parameter(add_parameter("head.weight", block::normal_parameter(weight, kInitialDeviation, meta)));
    }
  }

  void forward(TensorMap& activations) const override {
    write(activations, at::linear(layer_norm(ln_f_, read(activations)), weight_VC_));
  }

  void forward_hidden(TensorMap& activations) const override {
    activations.set(kHidden, layer_norm(ln_f_, read(activations)));
    activations.set(kProjection, tied_ ? with_late_gradient(weight_VC_) : weight_VC_);
  }

  std::vector<block::Tie> ties() const override {
    if (!tied_) return {};
    return {{"head.weight", "wte.weight"}};
  }

  double forward_flops(std::int64_t positions) const override {
    return 2.0 * static_cast<double>(positions) * static_cast<double>(n_embd_) * static_cast<double>(vocab_size_);
  }

 private:
  std::int64_t n_embd_, vocab_size_;
  bool tied_;
  Affine ln_f_;
  at::Tensor weight_VC_;
};

std::shared_ptr<const Rotation> make_rotation(const Config& config, const Shape& shape, bool meta) {
  if (config.positions != Positions::kRotary) return nullptr;
  const std::int64_t head = shape.n_embd / shape.n_head;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(meta ? at::kMeta : at::kCPU);
  const at::Tensor exponents = at::arange(0, head, 2, options) / static_cast<double>(head);
  const at::Tensor frequencies = at::pow(config.rotary_base, exponents).reciprocal();
  const at::Tensor angles_TD = at::outer(at::arange(shape.n_positions, options), frequencies);
  return std::make_shared<const Rotation>(Rotation{at::cos(angles_TD).unsqueeze(1), at::sin(angles_TD).unsqueeze(1)});
}

/// The location of the key if it was written, else of the block.
const runner::core::Location& location_of(const runner::core::Node& block, const char* key) {
  const runner::core::Node* node = block.find(key);
  return node != nullptr && !node->is_null() ? node->location() : block.location();
}

/// A size from the recipe, or else from the data; an error if the data need more than the recipe sets, or have none.
std::int64_t settle_size(const char* key, std::optional<std::int64_t> written, std::int64_t of_data,
                         const std::string& what_data_has, const std::string& hint, const Inputs& inputs) {
  if (!written && of_data <= 0) {
    inputs.diagnostics.error(inputs.block.location(), std::string("gpt cannot derive ") + key + " from this data",
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

std::optional<Shape> settle_shape(const Config& config, const Inputs& inputs) {
  const BatchSpec& data = inputs.data;
  const TensorSpec& input = data.at(kInput);
  if (input.dtype != Dtype::kInt64 || input.shape.size() != 2) {
    inputs.diagnostics.error(inputs.block.location(),
                             "gpt reads ids, int64 [batch, time], but the data is " + to_text(input),
                             "use data of text, or a model for features such as mlp");
    return std::nullopt;
  }
  Shape shape{config.n_layer, config.n_head, config.n_embd, 0, 0};
  const std::string ids = std::to_string(input.vocab_size), length = std::to_string(input.max_length);
  shape.vocab_size = settle_size("vocab_size", config.vocab_size, input.vocab_size, "has " + ids + " distinct ids",
                                 "set vocab_size to " + ids + " or leave it out", inputs);
  shape.n_positions =
      settle_size("n_positions", config.n_positions, input.max_length, "has sequences of max_seq_len " + length,
                  "set n_positions to " + length + " or leave it out", inputs);
  if (shape.vocab_size == 0 || shape.n_positions == 0) return std::nullopt;
  return shape;
}

}  // namespace

std::shared_ptr<Model> make(const Config& config, const Inputs& inputs) {
  const std::optional<Shape> shape = settle_shape(config, inputs);
  if (!shape) return nullptr;
  const TensorSpec ids{kInput, Dtype::kInt64, {kBatch, kTime}, false};
  const TensorSpec stream{kStream, Dtype::kFloat32, {kBatch, kTime, shape->n_embd}};
  const TensorSpec logits{kOutput, Dtype::kFloat32, {kBatch, kTime, shape->vocab_size}};
  const auto rotation = make_rotation(config, *shape, inputs.meta);

  std::vector<std::unique_ptr<block::Block>> blocks;
  auto embed = std::make_unique<Embed>(ids, stream, config, *shape, inputs.meta);
  const Embed& tokens = *embed;
  blocks.push_back(std::move(embed));
  for (std::int64_t i = 0; i < shape->n_layer; ++i) {
    const std::string name = "h." + std::to_string(i);
    blocks.push_back(std::make_unique<Transformer>(name, stream, config, *shape, rotation, inputs.meta));
  }
  blocks.push_back(std::make_unique<Head>(stream, logits, config, *shape, tokens, inputs.meta));
  return std::make_shared<Model>(std::move(blocks));
}

}  // namespace components::model::gpt
