#include "runner/train/step/window_estimate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstddef>
#include <exception>

#include "components/loss/loss.h"
#include "runner/distributed/process_group.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/step/accumulation_window.h"

namespace runner::train {
namespace {

/// Evaluation mode: dropout would draw numbers, and blur the estimate.
class Estimating {
 public:
  explicit Estimating(const Experiment& experiment) : model_(*experiment.model) { model_.set_training(false); }
  ~Estimating() { model_.set_training(true); }
  Estimating(const Estimating&) = delete;
  Estimating& operator=(const Estimating&) = delete;

 private:
  components::model::Model& model_;
};

/// Where processes divide the weights, all make as many passes as the busiest, some of them empty.
std::size_t passes_of(const Experiment& experiment, const AccumulationWindow& window) {
  const std::size_t mine = window.mine().size();
  return experiment.strategy->holds_rows_alone() ? std::max<std::size_t>(mine, window.busiest_passes()) : mine;
}

}  // namespace

void estimate_window(const Experiment& experiment, AccumulationWindow& window,
                     const components::AutocastOptions& autocast) {
  RECORD_USER_SCOPE("estimate");
  const at::NoGradGuard no_grad;
  const Estimating estimating(experiment);
  at::Tensor mine;  // on the device, which is waited for once
  const std::size_t passes = passes_of(experiment, window);
  const auto pass = [&](const MicroBatch& micro) {
    components::TensorMap tensors = experiment.upload(micro.tensors);
    const components::Autocast as_trained(autocast);
    autocast.by_block ? experiment.model->forward(tensors) : experiment.model->forward_for_loss(tensors);
    const at::Tensor one = experiment.loss->estimate_of(tensors).to(at::kDouble);
    mine = mine.defined() ? mine + one : one;
  };
  std::exception_ptr out_of_memory;
  for (std::size_t made = 0; made < passes; ++made) {
    experiment.strategy->begin_forward();
    if (made < window.mine().size() && out_of_memory == nullptr) {
      out_of_memory = out_of_memory_in([&] { pass(window.mine()[made]); });
    }
    experiment.strategy->end_forward();
  }
  const at::Tensor sum = mine.defined() ? mine.cpu().reshape({1}) : at::zeros({1}, at::kDouble);
  if (experiment.ranks != nullptr) {
    share_out_of_memory(*experiment.ranks, out_of_memory);
    experiment.ranks->begin_all_reduce(sum, "the step's estimate")->wait();
  } else if (out_of_memory != nullptr) {
    std::rethrow_exception(out_of_memory);
  }
  window.set_estimate(sum.item<double>());
}

}  // namespace runner::train
