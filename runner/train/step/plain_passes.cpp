#include "runner/train/step/plain_passes.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/grad_scaler.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/step/pass_hooks.h"

namespace runner::train {

void PlainPasses::run(StepResult& result) {
  const std::exception_ptr out_of_memory = out_of_memory_in([&] {
    sums_.clear();
    for (const MicroBatch& micro : parts_.window.mine()) {
      at::Tensor sum = parts_.hooks.forward(micro, parts_.experiment.upload(micro.tensors));
      sums_.push_back(sum.detach());
      go_back(micro, std::move(sum));
    }
    read_losses(result);  // not between two passes: reading a value waits for the device
  });
  parts_.hooks.finish(result, out_of_memory);
}

void PlainPasses::go_back(const MicroBatch& micro, at::Tensor sum) { parts_.hooks.backward(micro, sum); }

void PlainPasses::read_losses(StepResult& result) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    add_pass(parts_.hooks.loss_weight(parts_.window.mine()[i]), sums_[i].item<double>(), result);
  }
}

bool PlainPasses::clip(bool wants_norm, StepResult& result) {
  if (parts_.scaler.enabled() && !parts_.strategy.unscale(parts_.scaler)) return false;
  result.grad_norm = parts_.strategy.clip(wants_norm);
  return true;
}

void PlainPasses::update(bool& began) {
  parts_.window.release();
  parts_.strategy.update({}, began);
}

}  // namespace runner::train
