#pragma once

#include <cstdint>
#include <memory>

#include "runner/core/node.h"

namespace components::weight_averaging {

/// How an average of the weights is taken beside the training: pure functions of the step and of how many weights it
/// has taken so far. Its tensors are the training's.
class Averaging {
 public:
  /// The first weights that are taken are those after step start_step + update_every.
  Averaging(std::int64_t start_step, std::int64_t update_every) : start_step_(start_step), every_(update_every) {}
  virtual ~Averaging() = default;

  std::int64_t start_step() const { return start_step_; }
  /// Whether it takes the weights after optimizer step `step`, the first of which is 1.
  bool takes(std::int64_t step) const { return step > start_step_ && (step - start_step_) % every_ == 0; }
  /// How far it moves towards them when it has taken `taken` >= 1 before. (The first ones it copies.)
  virtual double share(std::int64_t taken) const = 0;
  /// Whether running statistics are measured anew, with the averaged weights, when the training is over.
  virtual bool updates_statistics() const { return false; }
  /// The factor of the base rates when `steps_done` are done and the schedule has `scheduled`.
  virtual double lr_factor(std::int64_t /*steps_done*/, double scheduled) const { return scheduled; }

 private:
  std::int64_t start_step_, every_;
};

struct Inputs {
  double base_lr = 0;  ///< the optimizer's, to which factors refer
};

std::shared_ptr<Averaging> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::weight_averaging
