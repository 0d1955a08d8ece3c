#include "runner/engine/memory/measure.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/block/quantized.h"
#include "components/tensor/device.h"
#include "components/tensor/tensors.h"
#include "generated/section/compile.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/engine/memory/shaped_data.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/memory/memory_estimate.h"
#include "runner/train/experiment/memory/memory_limits.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/strategy/make_strategy.h"
#include "runner/train/train.h"

namespace runner::engine {
namespace {

std::int64_t whole(double bytes) { return static_cast<std::int64_t>(std::min(bytes, 9e18)); }

/// Those that a source in bfloat16 leaves so.
std::set<std::string> left_in_bf16(const components::model::Model& model) {
  std::vector<checkpoint::SourceTensor> fills;
  for (const auto& parameter : model.parameters()) {
    checkpoint::SourceTensor fill{parameter.name, {}};
    fill.dtype = "BF16";
    fills.push_back(std::move(fill));
  }
  return checkpoint::bf16_in_source(fills, model);
}

}  // namespace

MemoryPlan memory_plan_of(const train::Experiment& experiment, const train::MemoryEstimate& estimate,
                          std::int64_t gpu_memory_bytes) {
  MemoryPlan plan = {.weights = whole(estimate.weights),
                     .optimizer = whole(estimate.optimizer),
                     .gradients = whole(estimate.gradients),
                     .batches = whole(estimate.batches),
                     .activations = whole(estimate.activations),
                     .weight_average = whole(estimate.weight_average),
                     .tensors = whole(estimate.tensors()),
                     .waiting_batches = whole(estimate.waiting_batches),
                     .data_sets = whole(estimate.data_sets),
                     .copies = whole(estimate.copies),
                     .program = whole(estimate.program),
                     .process = whole(estimate.process()),
                     .when = estimate.when,
                     .gpu = {}};
  const c10::Device device = train::device_of(experiment.recipe);
  if (device.is_cpu()) return plan;
  plan.gpu = {.device = components::to_text(device),
              .memory = gpu_memory_bytes,
              .workspace = train::kGpuWorkspaceBytes,
              .reserve = whole(train::kGpuReserve * estimate.tensors())};
  if (experiment.recipe.compile->cuda_graphs) {
    const auto passes = static_cast<double>(experiment.shape.accumulation_steps);
    plan.gpu.graph = whole(estimate.gradients + estimate.activations + passes * estimate.batches);
  }
  return plan;
}

std::optional<SizeEstimate> estimate_sizes(const resolve::Recipe& recipe, const SizeRequest& request,
                                           core::Diagnostics& diagnostics) {
  train::configure_torch(recipe);
  const std::int64_t samples = train::rank_micro_batch(recipe) * train::window_batches(recipe);
  train::Experiment shapes;
  shapes.train_data = shaped_data(recipe, request.length, samples);
  train::BuildOptions options;
  options.meta = true;
  options.for_training = request.trains;
  options.make_strategy = train::make_strategy;
  options.data_of = &shapes;
  if (request.bf16_source) options.in_bf16 = left_in_bf16;
  const auto experiment = train::build_experiment(recipe, options, diagnostics);
  if (experiment == nullptr) return std::nullopt;
  SizeEstimate estimate;
  for (const auto& parameter : experiment->model->parameters()) {
    estimate.tensors.push_back({parameter.name, parameter.tensor.sizes().vec()});
    if (parameter.tensor.requires_grad()) estimate.trained_elements += parameter.tensor.numel();
  }
  estimate.quantized_bytes = components::block::quantized_bytes(experiment->model->blocks());
  if (!request.trains) return estimate;
  const train::MemoryEstimate memory = train::estimate_memory(*experiment);
  if (!memory.unknown.empty()) {
    diagnostics.warning({}, "the memory of activations is not included: " + memory.unknown);
  }
  estimate.training = memory_plan_of(*experiment, memory, 0);
  return estimate;
}

}  // namespace runner::engine
