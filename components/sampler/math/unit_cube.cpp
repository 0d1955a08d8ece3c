#include "components/sampler/math/unit_cube.h"

#include <cmath>

namespace components::sampler {
namespace {

using Eigen::Index;

constexpr double kNowhere = 0.5;  // the coordinate of a number that plays no part, and -1 that of a choice

}  // namespace

UnitCube::UnitCube(const Space& space) : space_(space) {
  for (std::size_t i = 0; i < size(); ++i) {
    conditional_ = conditional_ || !space_.is_always_active(i);
    lines_.push_back(is_choice(i) ? std::nullopt : std::optional<NumericAxis>(dimension(i)));
  }
}

std::vector<bool> UnitCube::choices() const {
  std::vector<bool> choices;
  for (std::size_t i = 0; i < size(); ++i) choices.push_back(is_choice(i));
  return choices;
}

Eigen::VectorXd UnitCube::seen(const Point& point) const {
  Eigen::VectorXd seen_D(static_cast<Index>(size()));
  for (std::size_t i = 0; i < size(); ++i) {
    seen_D[static_cast<Index>(i)] = !std::isnan(point[i]) ? coordinate(i, point[i]) : is_choice(i) ? -1 : kNowhere;
  }
  return seen_D;
}

Eigen::MatrixXd UnitCube::seen(const std::vector<const Observation*>& list) const {
  Eigen::MatrixXd points_MD(static_cast<Index>(list.size()), static_cast<Index>(size()));
  for (std::size_t m = 0; m < list.size(); ++m) {
    points_MD.row(static_cast<Index>(m)) = seen(list[m]->point).transpose();
  }
  return points_MD;
}

Point UnitCube::point(const Eigen::VectorXd& x_D) const {
  return make_point(space_, [&](std::size_t i) { return value(i, x_D[static_cast<Index>(i)]); });
}

}  // namespace components::sampler
