#pragma once

#include <vector>

#include "runner/chart/range.h"

namespace runner::chart {

/// One axis of a chart: maps values to pixels, and chooses its ticks.
class ChartAxis {
 public:
  ChartAxis(bool logarithmic, double from, double to) : logarithmic_(logarithmic), from_(from), to_(to) {}

  /// Whether a value can be drawn on it.
  bool shows(double value) const;
  /// Extends the axis to this value.
  void take(double value) { range_.take(place(value)); }
  bool empty() const { return range_.empty(); }
  /// Gives an axis without extent one.
  void widen();
  double pixel(double value) const { return from_ + range_.share(place(value)) * (to_ - from_); }
  /// Ticks at round numbers.
  std::vector<double> ticks() const;

 private:
  double place(double value) const;
  double value(double place) const;

  bool logarithmic_;
  double from_, to_;
  Range range_;  ///< of the places
};

}  // namespace runner::chart
