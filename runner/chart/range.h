#pragma once

#include <limits>

namespace runner::chart {

/// What an axis goes over. Any finite values, however far apart.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value);
  bool empty() const { return low > high; }
  /// A range without extent gets one, so that a constant runs through the middle: a tenth of the value to each side, at
  /// most `margin_max`.
  void widen(double margin_max = std::numeric_limits<double>::max());
  /// 0 at `low`, 1 at `high`.
  double share(double value) const;
  /// The value at a share.
  double at(double share) const;
};

}  // namespace runner::chart
