#include "runner/train/step/captured_passes.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstddef>
#include <string>
#include <vector>

#include "runner/core/log.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/step/pass_hooks.h"

namespace runner::train {

CapturedPasses::CapturedPasses(const Parts& parts)
    : QueuedPasses(parts, true), captured_(parts.experiment.new_graph, parts.experiment, parts.parameters) {
  parts.experiment.optimizer->keep_rates_on_device();
}

StepFigures CapturedPasses::enqueue(bool wants_norm, StepResult& result, bool& began) {
  const AccumulationWindow& window = parts_.window;
  if (!window.is_full() || !captured_.takes(window.mine()) || !is_captured()) {
    return QueuedPasses::enqueue(wants_norm, result, began);
  }
  StepFigures figures = replay(began);
  parts_.hooks.finish(result, nullptr);
  return figures;
}

bool CapturedPasses::is_captured() {
  if (captured_.is_captured()) return true;
  const std::string step = "step " + std::to_string(parts_.progress.step + 1);
  if (!captured_.capture(parts_.window.mine(), [this](const CapturedStep::Inputs& inputs) { return work(inputs); })) {
    core::log_warning(step + ": no memory for a CUDA graph; the training continues without one");
    return false;
  }
  core::log_info(step + " and those of its shape are replayed as a CUDA graph");
  return true;
}

StepFigures CapturedPasses::work(const CapturedStep::Inputs& inputs) {
  sums_.clear();
  for (std::size_t i = 0; i < inputs.batches.size(); ++i) {
    const at::Tensor sum = parts_.hooks.forward(parts_.window.mine()[i], inputs.batches[i]);
    sums_.push_back(sum.detach());
    RECORD_USER_SCOPE("backward");
    torch::autograd::backward({sum}, {inputs.weights[i]});
  }
  StepFigures figures = clip_on_device(true);
  const at::Tensor bad = bad_with(figures, inputs.bad);
  if (bad.defined()) inputs.bad.copy_(bad);
  parts_.experiment.optimizer->skip_if(bad.defined() ? inputs.bad : bad);
  parts_.experiment.optimizer->capture_step();
  return figures;
}

StepFigures CapturedPasses::replay(bool& began) {
  const std::vector<MicroBatch>& window = parts_.window.mine();
  std::vector<double> weights;
  for (const MicroBatch& micro : window) weights.push_back(parts_.hooks.gradient_weight(micro));
  captured_.load(window, weights, bad_);
  began = true;
  parts_.experiment.optimizer->count_step();
  StepFigures figures = captured_.replay(parts_.hooks.loss_weights(), parts_.window.loss_factor());
  if (stops_on_nan_) bad_ = captured_.bad();
  parts_.window.release();
  return figures;
}

}  // namespace runner::train
