#include "runner/train/step/window_pass.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "runner/distributed/process_group.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/step/accumulation_window.h"

namespace runner::train {
namespace {

/// Evaluation mode: dropout would draw numbers, and blur what is measured.
class Evaluating {
 public:
  explicit Evaluating(components::model::Model& model) : model_(model) { model_.set_training(false); }
  ~Evaluating() { model_.set_training(true); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  components::model::Model& model_;
};

/// Where processes divide the weights, all make as many passes as the busiest, some of them empty.
std::size_t passes_of(const Experiment& experiment, const AccumulationWindow& window) {
  const std::size_t mine = window.mine().size();
  return experiment.strategy->holds_rows_alone() ? std::max<std::size_t>(mine, window.busiest_passes()) : mine;
}

}  // namespace

void pass_over_window(const WindowPass& pass,
                      const std::function<void(std::size_t micro, const components::TensorMap& tensors)>& take) {
  const Experiment& experiment = pass.experiment;
  const at::NoGradGuard no_grad;
  const Evaluating evaluating(pass.model);
  const bool is_own = &pass.model == experiment.model.get();
  const auto make = [&](std::size_t micro) {
    components::TensorMap tensors = experiment.upload(pass.window.mine()[micro].tensors);
    const components::Autocast as_trained(pass.autocast);
    pass.autocast.by_block ? pass.model.forward(tensors) : pass.model.forward_for_loss(tensors);
    take(micro, tensors);
  };
  std::exception_ptr out_of_memory;
  const std::size_t mine = pass.window.mine().size(), passes = is_own ? passes_of(experiment, pass.window) : mine;
  for (std::size_t made = 0; made < passes; ++made) {
    if (is_own) experiment.strategy->begin_forward();
    if (made < mine && out_of_memory == nullptr) {
      out_of_memory = out_of_memory_in([&] { make(made); });
    }
    if (is_own) experiment.strategy->end_forward();
  }
  if (experiment.ranks != nullptr) {
    share_out_of_memory(*experiment.ranks, out_of_memory);
  } else if (out_of_memory != nullptr) {
    std::rethrow_exception(out_of_memory);
  }
}

}  // namespace runner::train
