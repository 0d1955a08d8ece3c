#pragma once

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "components/sampler/math/grid_points.h"
#include "components/sampler/math/numeric_axis.h"
#include "components/sampler/math/observation.h"

namespace components::sampler {

// D: dimensions   M: variants

/// A space in the coordinates of a Gaussian process: the quantile of each number, the index of each choice. A point has
/// a coordinate in every dimension, active or not. Borrows the space.
class UnitCube {
 public:
  explicit UnitCube(const Space& space);

  std::size_t size() const { return space_.dimensions().size(); }
  const Dimension& dimension(std::size_t i) const { return space_.dimensions()[i]; }
  bool is_choice(std::size_t i) const { return dimension(i).kind == Dimension::Kind::kChoice; }
  bool is_smooth(std::size_t i) const { return lines_[i] && lines_[i]->step() == 0; }
  const NumericAxis& line(std::size_t i) const { return *lines_[i]; }
  /// Of each dimension, whether it is one.
  std::vector<bool> choices() const;

  double coordinate(std::size_t i, double value) const { return is_choice(i) ? value : lines_[i]->share(value); }
  double value(std::size_t i, double coordinate) const {
    return is_choice(i) ? coordinate : lines_[i]->from_unit(coordinate);
  }

  /// As the model sees a variant.
  Eigen::VectorXd seen(const Point& point) const;
  /// [M, D], a variant a row.
  Eigen::MatrixXd seen(const std::vector<const Observation*>& list) const;
  Point point(const Eigen::VectorXd& x_D) const;
  /// As the model sees the point at `x_D`.
  Eigen::VectorXd effective(const Eigen::VectorXd& x_D) const { return conditional_ ? seen(point(x_D)) : x_D; }
  bool allows(const Eigen::VectorXd& x_D) const { return space_.allows(point(x_D)); }

  /// Where a share of `share(i)` of the draws of dimension i lie below.
  template <typename Share>
  Eigen::VectorXd at_quantiles(Share share) const {
    Eigen::VectorXd x_D(static_cast<Eigen::Index>(size()));
    for (std::size_t i = 0; i < size(); ++i) {
      x_D[static_cast<Eigen::Index>(i)] = coordinate(i, dimension(i).quantile(share(i)));
    }
    return x_D;
  }

 private:
  const Space& space_;
  std::vector<std::optional<NumericAxis>> lines_;
  bool conditional_ = false;
};

}  // namespace components::sampler
