#include "runner/train/step/captured_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "components/tensor/device.h"
#include "runner/core/error.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradients.h"
#include "runner/train/experiment/out_of_memory.h"

namespace runner::train {
namespace {

/// Steps without the graph: in the first ones LibTorch chooses kernels and allocates workspaces, and the optimizer its
/// state.
constexpr std::int64_t kWarmUpSteps = 3;

}  // namespace

/// A tensor of a micro-batch.
struct CapturedStep::Shape {
  std::size_t pass;
  std::string name;
  std::vector<std::int64_t> sizes;
  at::ScalarType type;
  bool operator==(const Shape&) const = default;
};

CapturedStep::CapturedStep(const core::NewDeviceGraph& new_graph, const Experiment& experiment,
                           const std::vector<components::NamedTensor>& parameters)
    : new_graph_(new_graph), experiment_(experiment), parameters_(parameters) {}

CapturedStep::~CapturedStep() = default;

std::vector<CapturedStep::Shape> CapturedStep::shape_of(const std::vector<MicroBatch>& window) const {
  std::vector<Shape> shape;
  for (std::size_t pass = 0; pass < window.size(); ++pass) {
    for (const components::NamedTensor& item : window[pass].tensors.items()) {
      shape.push_back({pass, item.name, item.tensor.sizes().vec(), item.tensor.scalar_type()});
    }
  }
  return shape;
}

bool CapturedStep::takes(const std::vector<MicroBatch>& window) {
  if (gave_up_) return false;
  const std::vector<Shape> shape = shape_of(window);
  if (shape_.empty()) shape_ = shape;
  return shape == shape_ && (graph_ != nullptr || steps_++ >= kWarmUpSteps);
}

bool CapturedStep::capture(const std::vector<MicroBatch>& window, const Work& work) {
  const at::TensorOptions scalar = at::TensorOptions(at::kFloat).device(experiment_.device);
  std::unique_ptr<core::DeviceGraph> graph = new_graph_();
  try {
    for (const MicroBatch& micro : window) {
      inputs_.batches.push_back(experiment_.upload(micro.tensors));
      inputs_.weights.push_back(at::zeros({}, scalar));
    }
    weights_.assign(window.size(), std::numeric_limits<double>::quiet_NaN());
    inputs_.bad = at::zeros({}, scalar);
    drop_gradients(parameters_);
    components::synchronize(experiment_.device);
    components::empty_cache(experiment_.device);  // the graph has memory of its own
    graph->capture([&] { figures_ = work(inputs_); });
  } catch (const std::exception& error) {
    drop_gradients(parameters_);
    reset();
    gave_up_ = is_out_of_memory(error);
    if (gave_up_) return false;
    throw core::RunError("the step cannot be captured: " + plain_text(error), "remove compile.cuda_graphs");
  }
  for (const components::NamedTensor& parameter : parameters_) gradients_.push_back(parameter.tensor.grad());
  graph_ = std::move(graph);
  return true;
}

void CapturedStep::copy_in(const std::vector<MicroBatch>& window) {
  for (std::size_t pass = 0; pass < window.size(); ++pass) {
    const components::TensorMap batch = experiment_.upload(window[pass].tensors);
    for (const components::NamedTensor& item : batch.items()) inputs_.batches[pass].at(item.name).copy_(item.tensor);
  }
}

void CapturedStep::load(const std::vector<MicroBatch>& window, const std::vector<double>& weights,
                        const at::Tensor& bad) {
  RUNNER_ASSERT(graph_ != nullptr && weights.size() == inputs_.weights.size(), "the window has the graph's shape");
  const at::NoGradGuard no_grad;
  copy_in(window);
  for (std::size_t pass = 0; pass < weights.size(); ++pass) {
    if (weights[pass] == weights_[pass]) continue;
    inputs_.weights[pass].fill_(weights[pass]);
    weights_[pass] = weights[pass];
  }
  if (!bad.defined()) {
    inputs_.bad.zero_();
  } else if (!bad.is_same(inputs_.bad)) {
    inputs_.bad.copy_(bad);
  }
}

StepFigures CapturedStep::replay(std::vector<PassWeight> passes, double factor) {
  const at::NoGradGuard no_grad;
  graph_->replay();
  for (std::size_t i = 0; i < gradients_.size(); ++i) parameters_[i].tensor.mutable_grad() = gradients_[i];
  return figures_->of_replay(std::move(passes), factor);
}

void CapturedStep::reset() {
  graph_.reset();
  figures_.reset();
  gradients_.clear();
  inputs_ = {};
  shape_.clear();
  steps_ = 0;
  gave_up_ = false;
}

}  // namespace runner::train
