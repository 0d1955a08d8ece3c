#include "runner/train/observe/spike_detector.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace runner::train {

std::optional<double> SpikeDetector::z_score(double value) const {
  if (values_.size() < window_) return std::nullopt;
  const auto count = static_cast<double>(values_.size());
  double mean = 0;
  for (const double v : values_) mean += v / count;
  double variance = 0;
  for (const double v : values_) variance += (v - mean) * (v - mean) / count;
  const double deviation =
      std::max({std::sqrt(variance), kDeviationFloor * std::fabs(mean), std::numeric_limits<double>::min()});
  return (value - mean) / deviation;
}

void SpikeDetector::add(double value) {
  values_.push_back(value);
  while (values_.size() > window_) values_.pop_front();
}

core::Node SpikeDetector::state() const {
  core::Node list = core::Node::sequence();
  for (const double value : values_) list.items().push_back(core::Node::floating(value));
  return list;
}

void SpikeDetector::restore(const core::Node& state) {
  values_.clear();
  for (const core::Node& value : state.items()) add(value.as_double());
}

}  // namespace runner::train
