// O: outputs

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <vector>

#include "components/loss/value_loss.h"
#include "generated/loss/bce_with_logits.h"  // Config; declares make()
#include "runner/core/error.h"
#include "runner/core/text/text.h"

namespace components::loss::bce_with_logits {
namespace {

class BceWithLogits final : public ValueLoss {
 public:
  explicit BceWithLogits(const Config& config) : config_(config) {}

  /// Where the data come from, a look at the values costs nothing beside reading them.
  std::int64_t count(const TensorMap& batch) const override {
    const at::Tensor& target = batch.at(kTarget);
    if (!target.is_cpu()) return target.numel();
    const at::Tensor dense = target.contiguous();
    const auto* value = dense.const_data_ptr<float>();
    for (std::int64_t i = 0; i < dense.numel(); ++i) {
      if (value[i] >= 0.0F && value[i] <= 1.0F) continue;
      throw runner::core::RunError(
          "bce_with_logits needs targets from 0 to 1, but a sample has " + runner::core::short_number(value[i], 7),
          "use mse, l1 or huber for other values");
    }
    return target.numel();
  }
  bool is_of_labels() const override { return true; }

 private:
  at::Tensor sum_of_values(const at::Tensor& output, const at::Tensor& target) const override {
    if (config_.pos_weight && !pos_weight_O_.defined())
      pos_weight_O_ = at::tensor(*config_.pos_weight, at::kFloat).to(output.device());
    return at::binary_cross_entropy_with_logits(output, target, /*weight=*/{}, pos_weight_O_, at::Reduction::Sum);
  }

  Config config_;
  mutable at::Tensor pos_weight_O_;  // on the model's device, copied once; undefined: 1
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  if (!takes_values("bce_with_logits", inputs)) return nullptr;
  const TensorSpec& output = *inputs.find(kOutput);
  const std::int64_t outputs = output.shape.size() > 1 ? output.shape.back() : 1;
  const auto weights = static_cast<std::int64_t>(config.pos_weight ? config.pos_weight->size() : 1);
  if (weights != 1 && weights != outputs) {
    inputs.diagnostics.error(
        inputs.block.find("pos_weight")->location(),
        "pos_weight has " + std::to_string(weights) + " weights, but the model returns " + to_text(output),
        "give one weight, or one for each of the " + std::to_string(outputs) + " outputs");
    return nullptr;
  }
  return std::make_shared<BceWithLogits>(config);
}

}  // namespace components::loss::bce_with_logits
