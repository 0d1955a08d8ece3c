#pragma once

#include <vector>

#include "components/sampler/draws.h"
#include "components/sampler/space.h"

namespace components::sampler {

/// A density over some dimensions of a space: one kernel around each variant, and one as wide as the space.
///
/// Source  Optuna's _ParzenEstimator, multivariate, with its magic clip; Scott's rule for the width
class Parzen {
 public:
  /// `points` have all of `dimensions` (positions in the space), the oldest first.
  Parzen(const Space& space, std::vector<std::size_t> dimensions, const std::vector<const Point*>& points,
         double prior_weight);

  /// Draws the dimensions into `point`.
  void draw(Draws& draws, Point& point) const;
  double log_density(const Point& point) const;

 private:
  /// One dimension of all kernels, on a line where the distribution of the space is even.
  struct Axis {
    std::size_t index;
    const Dimension* dimension;
    double low = 0, high = 0;                        ///< of the line; of a choice unused
    double sigma = 1;                                ///< of all kernels but the last
    std::vector<double> centres;                     ///< by kernel
    std::vector<std::vector<double>> probabilities;  ///< of a choice, by kernel
  };
  double draw_axis(const Axis& axis, std::size_t kernel, Draws& draws) const;
  double log_of_axis(const Axis& axis, std::size_t kernel, double value) const;
  double sigma_of(const Axis& axis, std::size_t kernel) const;

  std::vector<double> weights_;  ///< by kernel; they add up to 1
  std::vector<Axis> axes_;
};

}  // namespace components::sampler
