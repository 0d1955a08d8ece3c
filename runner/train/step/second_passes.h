#pragma once

#include "runner/train/step/plain_passes.h"

namespace runner::train {

/// For a strategy that updates the parameters in the backward pass: the backward pass waits for the update, which first
/// repeats the forward pass where a backward pass had to show the norm.
class SecondPasses final : public PlainPasses {
 public:
  explicit SecondPasses(const Parts& parts) : PlainPasses(parts) {}

  void update(bool& began) override;
  void drop() override { pending_.reset(); }

 private:
  void go_back(const MicroBatch& micro, at::Tensor sum) override;

  at::Tensor pending_;  // the loss of a forward pass before its backward pass
};

}  // namespace runner::train
