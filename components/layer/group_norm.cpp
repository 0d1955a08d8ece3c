// C: channels

#include <ATen/ops/group_norm.h>

#include <memory>
#include <optional>
#include <string>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/group_norm.h"  // Config; declares make()

namespace components::layer::group_norm {
namespace {

class GroupNorm final : public block::BasicBlock {
 public:
  GroupNorm(const Config& config, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input, same_shape(inputs), inputs.weights),
        groups_(config.num_groups),
        eps_(config.eps),
        affine_(config.affine) {
    if (!affine_) return;
    const std::int64_t shape[] = {input().shape[1]};
    add_parameter(name() + ".weight", shape, part::constant(1.0));
    add_parameter(name() + ".bias", shape, part::constant(0.0));
  }

  void forward(TensorMap& activations) const override {
    std::optional<at::Tensor> weight_C, bias_C;
    if (affine_) {
      weight_C = parameter(0);
      bias_C = parameter(1);
    }
    write(activations, at::group_norm(read(activations), groups_, weight_C, bias_C, eps_));
  }

 private:
  std::int64_t groups_;
  double eps_;
  bool affine_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (!expect_images(inputs) || !expect_channels(inputs, "num_channels", config.num_channels)) return nullptr;
  if (inputs.input.shape[1] % config.num_groups != 0) {
    report_input_mismatch(inputs, "num_groups",
                          "splits the channels into " + std::to_string(config.num_groups) + " groups",
                          "num_groups must divide the number of input channels");
    return nullptr;
  }
  return std::make_shared<GroupNorm>(config, inputs);
}

}  // namespace components::layer::group_norm
