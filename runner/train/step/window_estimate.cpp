#include "runner/train/step/window_estimate.h"

#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <cstddef>

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"
#include "runner/distributed/process_group.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/step/accumulation_window.h"
#include "runner/train/step/window_pass.h"

namespace runner::train {

void estimate_window(const Experiment& experiment, AccumulationWindow& window,
                     const components::AutocastOptions& autocast) {
  RECORD_USER_SCOPE("estimate");
  at::Tensor mine;  // on the device, which is waited for once
  pass_over_window({experiment, *experiment.model, window, autocast},
                   [&](std::size_t /*micro*/, const components::TensorMap& tensors) {
                     const at::Tensor one = experiment.loss->estimate_of(tensors).to(at::kDouble);
                     mine = mine.defined() ? mine + one : one;
                   });
  const at::Tensor sum = mine.defined() ? mine.cpu().reshape({1}) : at::zeros({1}, at::kDouble);
  if (experiment.ranks != nullptr) experiment.ranks->begin_all_reduce(sum, "the step's estimate")->wait();
  window.set_estimate(sum.item<double>());
}

}  // namespace runner::train
