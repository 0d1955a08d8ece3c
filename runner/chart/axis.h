#pragma once

#include <vector>

#include "runner/chart/range.h"

namespace runner::chart {

/// One axis of a chart: values to pixels, and where its marks are.
class ChartAxis {
 public:
  ChartAxis(bool logarithmic, double from, double to) : logarithmic_(logarithmic), from_(from), to_(to) {}

  /// Whether a value has a place on it.
  bool shows(double value) const;
  /// The axis reaches as far as this value.
  void take(double value) { range_.take(place(value)); }
  bool empty() const { return range_.empty(); }
  /// An axis without extent gets one.
  void widen();
  double pixel(double value) const { return from_ + range_.share(place(value)) * (to_ - from_); }
  /// Round numbers.
  std::vector<double> ticks() const;

 private:
  double place(double value) const;
  double value(double place) const;

  bool logarithmic_;
  double from_, to_;
  Range range_;  ///< of the places
};

}  // namespace runner::chart
