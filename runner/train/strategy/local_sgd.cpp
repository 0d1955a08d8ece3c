#include "runner/train/strategy/local_sgd.h"

#include <ATen/core/grad_mode.h>

#include "components/tensor/tensors.h"
#include "runner/distributed/collectives.h"
#include "runner/distributed/process_group.h"

namespace runner::train {

LocalSgd::LocalSgd(distributed::ProcessGroup& ranks, const std::vector<components::NamedTensor>& parameters,
                   std::int64_t steps)
    : ranks_(ranks), parameters_(parameters), steps_(steps) {}

void LocalSgd::after_step(std::int64_t step) {
  in_sync_ = false;
  if (step % steps_ == 0) average();
}

void LocalSgd::average() {
  if (in_sync_) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters_) {
    if (parameter.tensor.requires_grad()) tensors.push_back(parameter.tensor);
  }
  distributed::take_mean(ranks_, tensors, "weights");
  in_sync_ = true;
}

}  // namespace runner::train
