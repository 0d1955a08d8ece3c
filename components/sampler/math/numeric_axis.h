#pragma once

#include "components/sampler/math/space.h"

namespace components::sampler {

/// A numeric dimension on an axis where its distribution is uniform: linear or logarithmic.
class NumericAxis {
 public:
  /// Not for a kChoice. `dimension` must outlive the axis.
  explicit NumericAxis(const Dimension& dimension);

  /// The ends: half a step beyond the first and the last value; of a normal distribution 4 deviations from its middle.
  double low() const { return low_; }
  double high() const { return high_; }
  /// Distance between values; 0 where any number is one.
  double step() const { return step_; }

  double at(double value) const;
  /// The value that is nearest to a place.
  double value(double x) const;

  /// The same with 0 for `low` and 1 for `high`.
  double share(double value) const { return (at(value) - low_) / (high_ - low_); }
  double from_unit(double share) const { return value(low_ + share * (high_ - low_)); }

 private:
  const Dimension* dimension_;
  double step_ = 0, low_ = 0, high_ = 0;
};

}  // namespace components::sampler
