#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "components/sampler/math/counter_rng.h"
#include "components/sampler/math/space.h"

namespace components::sampler {

/// A point made dimension by dimension; those that play no part are NaN.
template <typename Choose>
Point make_point(const Space& space, Choose choose) {
  Point point(space.dimensions().size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (space.is_active(point, i)) point[i] = choose(i);
  }
  return point;
}

/// Each dimension drawn from its distribution.
Point draw_point(const Space& space, CounterRng& rng);

/// The first of many draws that the constraints allow; nothing when none does.
inline constexpr int kDrawsMax = 10'000;
std::optional<Point> draw_allowed(const Space& space, CounterRng& rng);

/// All points of a finite space that the constraints allow, the last dimension changing fastest, each once. Borrows the
/// space.
class GridPoints {
 public:
  /// `checked_max`: maximum number of points to check, allowed or not.
  explicit GridPoints(const Space& space, std::int64_t checked_max = std::numeric_limits<std::int64_t>::max());

  /// The next one; nothing after the last.
  std::optional<Point> next();
  /// Whether it ended because there are no more.
  bool at_end() const { return at_end_; }

 private:
  bool advance();
  void begin_at(std::size_t dimension);

  const Space* space_;
  std::int64_t left_;  ///< how many points it may still look at
  Point point_;
  std::vector<std::int64_t> at_;  ///< of each dimension that plays a part: the number of its value
  bool begun_ = false, at_end_ = false;
};

/// The same, until `visit` returns false. Checks at most `checked_max` points, allowed or not: with very strict
/// constraints a search could take years. Returns whether it visited all.
bool for_each_grid_point(const Space& space, const std::function<bool(const Point&)>& visit,
                         std::int64_t checked_max = std::numeric_limits<std::int64_t>::max());

/// Whether all dimensions have finitely many values.
bool is_finite(const Space& space);

}  // namespace components::sampler
