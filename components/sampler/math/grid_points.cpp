#include "components/sampler/math/grid_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runner/core/error.h"

namespace components::sampler {
GridPoints::GridPoints(const Space& space, std::int64_t checked_max)
    : space_(&space),
      left_(checked_max),
      point_(space.dimensions().size(), std::numeric_limits<double>::quiet_NaN()),
      at_(space.dimensions().size()) {
  RUNNER_ASSERT(is_finite(space), "only what ends is walked through");
}

std::optional<Point> GridPoints::next() {
  while (left_ > 0 && advance()) {
    --left_;
    if (space_->allows(point_)) return point_;
  }
  return std::nullopt;
}

/// False after the last point.
bool GridPoints::advance() {
  if (!std::exchange(begun_, true)) return begin_at(0), true;
  for (std::size_t i = point_.size(); i-- > 0;) {
    if (std::isnan(point_[i])) continue;
    const Dimension& dimension = space_->dimensions()[i];
    if (++at_[i] < dimension.count()) {
      point_[i] = dimension.nth(at_[i]);
      return begin_at(i + 1), true;
    }
    point_[i] = std::numeric_limits<double>::quiet_NaN();
  }
  at_end_ = true;
  return false;
}

/// The dimension and those after it take their first values.
void GridPoints::begin_at(std::size_t dimension) {
  std::fill(point_.begin() + static_cast<std::ptrdiff_t>(dimension), point_.end(),
            std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = dimension; i < point_.size(); ++i) {
    if (!space_->is_active(point_, i)) continue;
    at_[i] = 0;
    point_[i] = space_->dimensions()[i].nth(0);
  }
}

Point draw_point(const Space& space, CounterRng& rng) {
  return make_point(space, [&](std::size_t i) { return space.dimensions()[i].quantile(rng.uniform()); });
}

std::optional<Point> draw_allowed(const Space& space, CounterRng& rng) {
  for (int i = 0; i < kDrawsMax; ++i) {
    Point point = draw_point(space, rng);
    if (space.allows(point)) return point;
  }
  return std::nullopt;
}

bool for_each_grid_point(const Space& space, const std::function<bool(const Point&)>& visit, std::int64_t checked_max) {
  GridPoints walk(space, checked_max);
  for (auto point = walk.next(); point && visit(*point); point = walk.next()) {
  }
  return walk.at_end();
}

bool is_finite(const Space& space) {
  return std::all_of(space.dimensions().begin(), space.dimensions().end(),
                     [](const Dimension& dimension) { return dimension.count() > 0; });
}

}  // namespace components::sampler
