#pragma once

#include <string>

namespace runner::sweep {

/// The objective of trials: a series, and which of its points counts.
struct Metric {
  std::string name;
  bool maximize = false, best = false;

  /// Converts `maximize` to `minimize` and back: samplers always minimize.
  double signed_value(double value) const { return maximize ? -value : value; }
};

}  // namespace runner::sweep
