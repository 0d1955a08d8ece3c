#include "components/sampler/walk.h"

#include <algorithm>

#include "runner/core/error.h"

namespace components::sampler {
namespace {

/// False when the visitor has seen enough.
bool walk_from(const Space& space, Point& point, std::size_t index, const std::function<bool(const Point&)>& visit) {
  if (index == point.size()) return !space.allows(point) || visit(point);
  if (!space.is_active(point, index)) return walk_from(space, point, index + 1, visit);
  const Dimension& dimension = space.dimensions()[index];
  for (std::int64_t i = 0; i < dimension.count(); ++i) {
    point[index] = dimension.nth(i);
    if (!walk_from(space, point, index + 1, visit)) return false;
  }
  point[index] = std::numeric_limits<double>::quiet_NaN();
  return true;
}

}  // namespace

Point draw_point(const Space& space, Draws& draws) {
  return make_point(space, [&](std::size_t i) { return space.dimensions()[i].quantile(draws.uniform()); });
}

std::optional<Point> draw_allowed(const Space& space, Draws& draws) {
  for (int i = 0; i < kDrawsMax; ++i) {
    Point point = draw_point(space, draws);
    if (space.allows(point)) return point;
  }
  return std::nullopt;
}

void walk_points(const Space& space, const std::function<bool(const Point&)>& visit) {
  RUNNER_ASSERT(is_finite(space), "only what ends is walked through");
  Point point(space.dimensions().size(), std::numeric_limits<double>::quiet_NaN());
  walk_from(space, point, 0, visit);
}

bool is_finite(const Space& space) {
  return std::all_of(space.dimensions().begin(), space.dimensions().end(),
                     [](const Dimension& dimension) { return dimension.count() > 0; });
}

}  // namespace components::sampler
