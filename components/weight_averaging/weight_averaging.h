#pragma once

#include <cstdint>
#include <memory>

#include "runner/core/node.h"

namespace components::weight_averaging {

/// How weights are averaged during training: pure functions of the step and of the number of averaged weights. The
/// trainer owns the tensors.
class Averaging {
 public:
  /// The first averaged weights are those after step start_step + update_every.
  Averaging(std::int64_t start_step, std::int64_t update_every) : start_step_(start_step), every_(update_every) {}
  virtual ~Averaging() = default;

  std::int64_t start_step() const { return start_step_; }
  /// Whether to average the weights after optimizer step `step`, counted from 1.
  bool should_update(std::int64_t step) const { return step > start_step_ && (step - start_step_) % every_ == 0; }
  /// The weight of new weights after `averaged` >= 1 earlier ones. (The first ones are copied.)
  virtual double weight_of_new(std::int64_t averaged) const = 0;
  /// Whether to measure running statistics with the averaged weights after training.
  virtual bool updates_bn_stats() const { return false; }
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
