#pragma once

#include <string>

namespace runner::sweep {

/// What trials are compared by: the series, and which of its points counts.
struct Metric {
  std::string name;
  bool maximize = false, best = false;

  /// `maximize` made `minimize` and back: what samplers see of a value, and the value of what they see.
  double signed_value(double value) const { return maximize ? -value : value; }
};

}  // namespace runner::sweep
