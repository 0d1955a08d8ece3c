#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/weight_averaging/weight_averaging.h"
#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace components {
struct NamedTensor;
}

namespace runner::train {

/// The average that `weight_averaging` keeps of a model's weights (and buffers). Always float32; tensors that are not
/// floating-point are not averaged.
///
/// State   value `taken`; while the average is in the model, tensors `trained.<weight>`, and `average.<weight>` only
///         where the model's type rounds it; else all `average.<weight>`. Without averaging it has no state, and
///         a loaded state only serves to restore the trained weights.
class WeightAverage final : public core::Stateful {
 public:
  /// `averaging` may be null. `weights`: the model's own, changed in place.
  WeightAverage(std::shared_ptr<components::weight_averaging::Averaging> averaging,
                const std::vector<components::NamedTensor>& weights);
  ~WeightAverage() override;

  /// Call after optimizer step `step`, counted from 1.
  void after_step(std::int64_t step);
  /// The factor of the base learning rates for the next step, given the schedule's factor `scheduled`.
  double lr_factor(std::int64_t steps_done, double scheduled) const;

  /// Puts the average into the model, or with false restores the trained weights bitwise. Does nothing before the
  /// first update, or if already done.
  void use_average(bool average);
  /// Makes the current values of these weights their average, while the average is in the model.
  void copy_running_stats(const std::vector<components::NamedTensor>& measured);
  /// Whether there is an average that needs its running statistics measured after training.
  bool updates_bn_stats() const;
  /// Drops the average; the model has the trained weights.
  void reset();

  bool averages() const { return averaging_ != nullptr; }
  std::int64_t bytes() const;  ///< of the average, once there is one

  void save_state(core::StateWriter& writer) const override;
  void load_state(const core::StateReader& reader) override;

 private:
  struct Weight;

  std::shared_ptr<components::weight_averaging::Averaging> averaging_;
  std::vector<Weight> weights_;
  std::int64_t taken_ = 0;
};

}  // namespace runner::train
