// B: samples   C: channels

#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/relu.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "components/block/basic_block.h"
#include "components/layer/epilogue.h"
#include "components/layer/fused_batch_norm.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/batch_norm.h"  // Config; declares make()
#include "runner/core/error.h"

namespace components::layer::batch_norm {
namespace {

class BatchNorm final : public block::BasicBlock, public FusesEpilogue {
 public:
  BatchNorm(const Config& config, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input, same_shape(inputs), inputs.weights),
        path_(inputs.path),
        eps_(config.eps),
        momentum_(config.momentum) {
    const std::int64_t channels = input().shape[1];
    if (config.affine) {
      add_parameter(name() + ".weight", {channels}, part::constant(1.0));
      add_parameter(name() + ".bias", {channels}, part::constant(0.0));
    }
    if (config.track_running_stats) {
      add_buffer(name() + ".running_mean", {channels}, 0.0);
      add_buffer(name() + ".running_var", {channels}, 1.0);
    }
  }

  void forward(TensorMap& activations) const override {
    write(activations, forward_fused(read(activations), nullptr, false));
  }

  at::Tensor forward_fused(const at::Tensor& x, const at::Tensor* addend, bool relu) const override {
    const bool tracked = buffer_count() > 0, by_batch = training() || !tracked;
    if (by_batch) {
      expect_spread(x);
      const at::Tensor none, weight_C = learned(0).value_or(none), bias_C = learned(1).value_or(none);
      const at::Tensor &mean_C = tracked ? buffer(0) : none, &var_C = tracked ? buffer(1) : none;
      const BatchNormArguments arguments{x, weight_C, bias_C, mean_C, var_C, addend, relu, momentum(), eps_};
      if (can_fuse(arguments)) return fused_batch_norm(arguments);
    }
    at::Tensor y = at::batch_norm(x, learned(0), learned(1), tracked ? std::optional(buffer(0)) : std::nullopt,
                                  tracked ? std::optional(buffer(1)) : std::nullopt, by_batch, momentum(), eps_,
                                  /*cudnn_enabled=*/false);
    if (addend != nullptr) y = at::add(y, *addend);
    return relu ? at::relu(y) : y;
  }

  void set_running_stats_momentum(std::optional<double> value) override { momentum_override_ = value; }

  void decay_running_stats(std::int64_t batches) override {
    const double left = std::pow(1.0 - momentum(), static_cast<double>(batches));
    for (std::size_t i = 0; i < buffer_count(); ++i) at::Tensor(buffer(i)).mul_(left);
  }

 private:
  double momentum() const { return momentum_override_.value_or(momentum_); }

  /// Scale or offset; float32 like the statistics, whatever the type of the model's weights.
  std::optional<at::Tensor> learned(std::size_t position) const {
    if (parameter_count() == 0) return std::nullopt;
    return parameter(position).to(at::kFloat);
  }

  void expect_spread(const at::Tensor& x) const {
    if (x.numel() > x.size(1)) return;
    throw runner::core::RunError(
        path_ + ": batch_norm got a batch of one sample with one value per channel, " + "which has no variance",
        "use a larger micro_batch_size and `loader: {drop_last: true}`");
  }

  std::string path_;
  double eps_, momentum_;
  std::optional<double> momentum_override_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_floats(inputs)) return nullptr;
  const auto& shape = inputs.input.shape;
  if ((shape.size() != 2 && shape.size() != 4) || shape[1] <= 0) {
    report_input_mismatch(inputs, nullptr, "needs float32 [batch, features] or [batch, channels, height, width]",
                          "layer_norm normalises the last dimension of any other shape");
    return nullptr;
  }
  if (!expect_channels(inputs, "num_features", config.num_features)) return nullptr;
  return std::make_shared<BatchNorm>(config, inputs);
}

}  // namespace components::layer::batch_norm
