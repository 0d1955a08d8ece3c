#include "runner/train/step/second_passes.h"

#include <utility>

#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/step/pass_hooks.h"

namespace runner::train {

void SecondPasses::go_back(const MicroBatch& micro, at::Tensor sum) {
  if (!parts_.strategy.defers_backward()) return PlainPasses::go_back(micro, std::move(sum));
  pending_ = std::move(sum);
}

void SecondPasses::update(bool& began) {
  const auto forward_again = [this] {
    for (const MicroBatch& micro : parts_.window.mine()) {
      pending_ = parts_.hooks.forward(micro, parts_.experiment.upload(micro.tensors));
    }
  };
  const auto backward_again = [this] {
    if (pending_.defined()) parts_.hooks.backward(parts_.window.mine().back(), std::exchange(pending_, {}));
  };
  parts_.strategy.update({forward_again, backward_again}, began);
}

}  // namespace runner::train
