#include "components/layer/layer.h"

#include <utility>

#include "components/block/basic_block.h"
#include "components/tensor/tensors.h"

namespace components::layer {
namespace {

class Elementwise final : public block::BasicBlock {
 public:
  Elementwise(const Inputs& inputs, at::Tensor (*function)(const at::Tensor&))
      : BasicBlock(inputs.name, inputs.input, same_shape(inputs)), function_(function) {}

  void forward(TensorMap& activations) const override { write(activations, function_(read(activations))); }

 private:
  at::Tensor (*function_)(const at::Tensor&);
};

std::string type_of(const runner::core::Node& block) {
  const runner::core::Node* type = block.find("type");
  return type != nullptr ? type->as_string() : block.is_string() ? block.as_string() : "this layer";
}

}  // namespace

void report_input_mismatch(const Inputs& inputs, const char* key, const std::string& what, const std::string& hint) {
  const runner::core::Node* node = key != nullptr ? inputs.block.find(key) : nullptr;
  inputs.diagnostics.error(node != nullptr ? node->location() : inputs.block.location(),
                           inputs.path + ": " + type_of(inputs.block) + " " + what + ", but " + inputs.from +
                               (inputs.from.starts_with("the ") ? " is " : " returns ") + to_text(inputs.input),
                           hint);
}

bool expect_floats(const Inputs& inputs) {
  if (inputs.input.dtype == Dtype::kFloat32) return true;
  report_input_mismatch(inputs, nullptr, "needs float32", "put an embedding before it");
  return false;
}

bool expect_images(const Inputs& inputs) {
  const auto& shape = inputs.input.shape;
  if (!expect_floats(inputs)) return false;
  if (shape.size() == 4 && shape[1] > 0 && shape[2] > 0 && shape[3] > 0) return true;
  report_input_mismatch(inputs, nullptr, "needs images, float32 [batch, channels, height, width]",
                        "put image layers before flatten, and only for data of images");
  return false;
}

bool expect_channels(const Inputs& inputs, const char* key, std::optional<std::int64_t> wanted) {
  const std::int64_t arriving = inputs.input.shape[1];
  if (!wanted || *wanted == arriving) return true;
  report_input_mismatch(inputs, key, "expects " + std::to_string(*wanted) + " channels",
                        std::string("set ") + key + " to " + std::to_string(arriving) + " or leave it out");
  return false;
}

TensorSpec same_shape(const Inputs& inputs) { return {inputs.output_name, Dtype::kFloat32, inputs.input.shape}; }

std::shared_ptr<Layer> make_elementwise(const Inputs& inputs, at::Tensor (*function)(const at::Tensor&)) {
  if (!expect_floats(inputs)) return nullptr;
  return std::make_shared<Elementwise>(inputs, function);
}

double rows_per_sample(const TensorSpec& port, std::int64_t positions) {
  double rows = 1.0;
  for (std::size_t i = 1; i + 1 < port.shape.size(); ++i) {
    rows *= static_cast<double>(port.shape[i] == kTime ? positions : port.shape[i]);
  }
  return rows;
}

std::string nondeterministic_operation(const block::Block& block) {
  const auto* const layer = dynamic_cast<const NondeterministicOnGpu*>(&block);
  return layer != nullptr ? layer->nondeterministic_operation() : "";
}

}  // namespace components::layer
