// F: features in   O: features out

#include <ATen/ops/linear.h>

#include <memory>
#include <string>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/linear.h"  // Config; declares make()

namespace components::layer::linear {
namespace {

TensorSpec output_of(const Config& config, const Inputs& inputs) {
  TensorSpec output{inputs.output_name, Dtype::kFloat32, inputs.input.shape};
  output.shape.back() = config.out_features;
  return output;
}

class Linear final : public block::BasicBlock {
 public:
  Linear(const Config& config, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input, output_of(config, inputs), inputs.weights), bias_(config.bias) {
    const std::int64_t in = input().shape.back(), out = config.out_features;
    // Zeros are drawn as well, so that the layers after this one begin as they would after another one.
    const bool zeros = config.init == Init::kZeros;
    add_parameter(name() + ".weight", {out, in}, zeros ? part::uniform(0.0) : part::kaiming_uniform(in));
    if (bias_) add_parameter(name() + ".bias", {out}, zeros ? part::uniform(0.0) : part::bias_uniform(in));
  }

  void forward(TensorMap& activations) const override {
    const at::Tensor& x_F = read(activations);
    write(activations, bias_ ? at::linear(x_F, parameter(0), parameter(1)) : at::linear(x_F, parameter(0)));
  }

  double forward_flops(std::int64_t positions) const override {
    const double in = static_cast<double>(input().shape.back()), out = static_cast<double>(output().shape.back());
    return 2.0 * in * out * rows_per_sample(input(), positions);
  }

 private:
  bool bias_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_floats(inputs)) return nullptr;
  const std::int64_t arriving = inputs.input.shape.back();
  if (inputs.input.shape.size() < 2 || arriving <= 0) {
    report_input_mismatch(inputs, nullptr, "needs a last dimension of known size", "embed or flatten it first");
    return nullptr;
  }
  if (config.in_features && *config.in_features != arriving) {
    report_input_mismatch(inputs, "in_features", "expects " + std::to_string(*config.in_features) + " features",
                          "set in_features to " + std::to_string(arriving) + " or leave it out");
    return nullptr;
  }
  return std::make_shared<Linear>(config, inputs);
}

}  // namespace components::layer::linear
