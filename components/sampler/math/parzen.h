#pragma once

#include <optional>
#include <vector>

#include "components/sampler/math/counter_rng.h"
#include "components/sampler/math/numeric_axis.h"
#include "components/sampler/math/space.h"

namespace components::sampler {

/// A density over some dimensions of a space: one kernel around each variant, as wide as the distance to its
/// neighbours, and one as wide as the space.
///
/// Source  Optuna 5's _ParzenEstimator with its defaults: product kernels, the prior, magic clip without end points
class Parzen {
 public:
  /// `points` have all of `dimensions` (positions in the space), the oldest first.
  Parzen(const Space& space, const std::vector<std::size_t>& dimensions, const std::vector<const Point*>& points,
         double prior_weight);

  /// Draws the dimensions into `point`.
  void draw(CounterRng& rng, Point& point) const;
  double log_density(const Point& point) const;

 private:
  /// One dimension of all kernels. Arrays are by kernel; that of
  /// the space is the last.
  struct Axis {
    std::size_t index;
    const Dimension* dimension;
    std::optional<NumericAxis> line;    ///< none of a choice
    std::vector<double> centres;        ///< of a choice: which; of the last kernel -1
    std::vector<double> sigmas;         ///< of a choice unused, as are the following
    std::vector<double> log_norms;      ///< that the kernel adds up to 1 between `low` and `high`
    std::vector<std::size_t> forms;     ///< which of `distinct` it equals, where values have a step
    std::vector<std::size_t> distinct;  ///< kernels that look like none before them
    double log_hit = 0, log_miss = 0;   ///< of a choice: of the variant's own, of another
    double hit = 0;                     ///< share of the variant's own
  };
  void set_choice(Axis& axis, const std::vector<const Point*>& points, double prior_weight) const;
  static void set_line(Axis& axis, const std::vector<const Point*>& points);
  static double draw_axis(const Axis& axis, std::size_t kernel, CounterRng& rng);
  static void add_logs(const Axis& axis, double value, const std::vector<bool>& counts, std::vector<double>& logs);
  std::vector<bool> kernels_that_count(const Point& point) const;

  std::vector<double> weights_;  ///< by kernel; they add up to 1
  std::vector<double> log_weights_;
  std::vector<Axis> axes_;
};

}  // namespace components::sampler
