// B: samples   F: features   O: outputs

#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/model/fused_linear.h"
#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "generated/model/mlp.h"  // Config; declares make()

namespace components::model::mlp {
namespace {

at::Tensor activate(Activation activation, const at::Tensor& x_BF) {
  switch (activation) {
    case Activation::kRelu: break;  // part of the linear layer's node
    case Activation::kGelu: return at::gelu(x_BF);
    case Activation::kTanh: return at::tanh(x_BF);
    case Activation::kSilu: return at::silu(x_BF);
  }
  return x_BF;
}

/// One linear layer and, unless it is the last, what follows it.
class Layer final : public block::BasicBlock {
 public:
  Layer(std::string name, TensorSpec input, TensorSpec output, const Config& config, bool last,
        part::WeightMaker& weights)
      : block::BasicBlock(std::move(name), std::move(input), std::move(output), weights),
        in_features_(this->input().shape.back()),
        out_features_(this->output().shape.back()),
        activation_(config.activation),
        dropout_(config.dropout),
        last_(last),
        bias_(config.bias) {
    add_parameter(this->name() + ".weight", {out_features_, in_features_}, part::kaiming_uniform(in_features_));
    if (bias_) add_parameter(this->name() + ".bias", {out_features_}, part::bias_uniform(in_features_));
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& x_BF = read(activations);
    const bool relu = !last_ && activation_ == Activation::kRelu;
    at::Tensor y_BF = fused_linear(x_BF, parameter(0), bias_ ? parameter(1) : at::Tensor(), relu);
    if (!last_) {
      if (!relu) y_BF = activate(activation_, y_BF);
      if (training() && dropout_ > 0.0) y_BF = at::dropout(y_BF, dropout_, true);
    }
    write(activations, std::move(y_BF));
  }

  double forward_flops(std::int64_t) const override {
    return 2.0 * static_cast<double>(in_features_) * static_cast<double>(out_features_);
  }

 private:
  std::int64_t in_features_, out_features_;
  Activation activation_;
  double dropout_;
  bool last_, bias_;
};

/// Features of the input, or nothing and an error when the data have another shape.
std::optional<std::int64_t> features(const Inputs& inputs) {
  const TensorSpec& input = inputs.data.at(kInput);
  if (input.dtype == Dtype::kFloat32 && input.shape.size() == 2 && input.shape[1] > 0) return input.shape[1];
  inputs.diagnostics.error(
      inputs.block.location(), "mlp reads features, float32 [batch, n], but the data is " + to_text(input),
      input.dtype == Dtype::kInt64 ? "for ids use a model such as gpt, or sequential with an embedding"
                                   : "use sequential with a flatten layer");
  return std::nullopt;
}

/// Width of the output: from the recipe, else from the target.
std::optional<std::int64_t> output_width(const Config& config, const Inputs& inputs) {
  if (config.out_features) return *config.out_features;
  const TensorSpec& target = inputs.data.at(kTarget);
  if (target.num_classes > 0) return target.num_classes;
  if (target.dtype == Dtype::kFloat32 && target.shape.size() == 2 && target.shape[1] > 0) return target.shape[1];
  inputs.diagnostics.error(inputs.block.location(),
                           "mlp cannot derive its output width from a target of " + to_text(target),
                           "set out_features");
  return std::nullopt;
}

}  // namespace

std::shared_ptr<Model> make(const Config& config, const Inputs& inputs) {
  const std::optional<std::int64_t> in = features(inputs);
  const std::optional<std::int64_t> out = output_width(config, inputs);
  if (!in || !out) return nullptr;
  std::vector<std::int64_t> widths = config.hidden;
  widths.push_back(*out);
  std::vector<std::unique_ptr<block::Block>> blocks;
  TensorSpec port{kInput, Dtype::kFloat32, {kBatch, *in}};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool last = i + 1 == widths.size();
    TensorSpec next{last ? kOutput : "x", Dtype::kFloat32, {kBatch, widths[i]}};
    blocks.push_back(std::make_unique<Layer>("layers." + std::to_string(i), port, next, config, last, inputs.weights));
    port = next;
  }
  return std::make_shared<Model>(std::move(blocks));
}

}  // namespace components::model::mlp
