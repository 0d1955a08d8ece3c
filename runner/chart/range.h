#pragma once

#include <limits>

namespace runner::chart {

/// The range of an axis. Any finite values.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value);
  bool empty() const { return low > high; }
  /// Widens a range without extent, so that a constant is in the middle: by a tenth of the value to each side, at most
  /// `margin_max`.
  void widen(double margin_max = std::numeric_limits<double>::max());
  /// 0 at `low`, 1 at `high`.
  double share(double value) const;
  /// The value at a share.
  double at(double share) const;
};

}  // namespace runner::chart
