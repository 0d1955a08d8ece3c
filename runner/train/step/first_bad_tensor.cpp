#include "runner/train/step/first_bad_tensor.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradients.h"

namespace runner::train {
namespace {

bool all_finite(const at::Tensor& tensor) {
  return !at::isFloatingType(tensor.scalar_type()) || at::isfinite(tensor).all().item<bool>();
}

/// First bad output of the blocks for this batch; "" when all are finite.
std::string first_bad_output(const Experiment& experiment, const MicroBatch& micro) {
  components::TensorMap activations = experiment.upload(micro.tensors);
  for (const auto& block : experiment.model->blocks()) {
    experiment.model->forward_block(*block, activations);
    for (const auto& output : block->outputs()) {
      if (!all_finite(activations.at(output.name))) return "output \"" + output.name + "\" of block " + block->name();
    }
  }
  return "";
}

}  // namespace

// No weight has changed, so this is the order in which NaNs spread.
std::string first_bad_tensor(const Experiment& experiment, const std::vector<MicroBatch>& batches,
                             const components::NamedTensors& parameters, const components::AutocastOptions& autocast) {
  if (batches.empty()) return first_bad_gradient(parameters);  // another process had all the samples
  for (const MicroBatch& micro : batches) {
    for (const components::NamedTensor& item : micro.tensors.items()) {
      if (!all_finite(item.tensor)) return "the batch's " + item.name;
    }
  }
  std::string bad_weight;
  experiment.model->visit_weights([&](const components::block::Block& block) {
    if (bad_weight.empty()) bad_weight = first_bad_parameter(block.parameters());
  });
  if (!bad_weight.empty()) return bad_weight;
  const components::Autocast cast(autocast);
  const at::NoGradGuard no_grad;
  for (const MicroBatch& micro : batches) {
    if (auto bad = first_bad_output(experiment, micro); !bad.empty()) return bad;
  }
  if (auto bad = first_bad_gradient(parameters); !bad.empty()) return bad;
  return "the loss";
}

}  // namespace runner::train
