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

/// The average that a recipe's `weight_averaging` keeps beside the weights (and buffers) of a model. It is float32
/// whatever they are; those that are no floating numbers are not averaged.
///
/// State   value `taken`; while the average is in the model, tensors `trained.<weight>`, and `average.<weight>` only
///         where the model's type rounds it; else `average.<weight>` of all. Without an averaging it has no state, and
///         one that it loads serves to put the trained weights back: it then ends there.
class WeightAverage final : public core::Stateful {
 public:
  /// `averaging` may be null. `weights`: what the model computes with, in place.
  WeightAverage(std::shared_ptr<components::weight_averaging::Averaging> averaging,
                const std::vector<components::NamedTensor>& weights);
  ~WeightAverage() override;

  /// After the optimizer has made step `step`, the first of which is 1.
  void after_step(std::int64_t step);
  /// The factor of the base rates for the next step, where the schedule has `scheduled`.
  double lr_factor(std::int64_t steps_done, double scheduled) const;

  /// Puts the average into the model, and with false the trained weights back, bit for bit. Nothing happens before the
  /// first update, or where it was done already.
  void use_average(bool average);
  /// What these of the weights hold while the average is in the model becomes their average.
  void adopt(const std::vector<components::NamedTensor>& measured);
  /// Whether there is an average whose running statistics are to be measured when the training is over.
  bool updates_statistics() const;
  /// As if nothing had been averaged yet; the model has the trained weights.
  void begin_anew();

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
