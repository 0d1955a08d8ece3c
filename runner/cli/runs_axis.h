#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace runner::cli {

/// One axis of a chart: values to pixels, and where its marks are.
class ChartAxis {
 public:
  ChartAxis(bool logarithmic, double from, double to) : logarithmic_(logarithmic), from_(from), to_(to) {}

  /// Whether a value has a place on it.
  bool shows(double value) const;
  /// The axis reaches as far as this value.
  void take(double value);
  bool empty() const { return low_ > high_; }
  /// An axis without extent gets one.
  void widen();
  double pixel(double value) const { return from_ + (place(value) - low_) / (high_ - low_) * (to_ - from_); }
  /// Pixels from one whole number to the next.
  double pixels_per_unit() const;
  /// Round numbers.
  std::vector<double> ticks() const;

 private:
  double place(double value) const;
  double value(double place) const;

  bool logarithmic_;
  double from_, to_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -std::numeric_limits<double>::infinity();
};

}  // namespace runner::cli
