#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "runner/core/node.h"

namespace runner::train {

/// How far a value lies above those of the last steps. A pure function of the sequence of values, so a resumed run
/// decides like an uninterrupted one.
///
/// Source  llm.c, OutlierDetector: mean and deviation over a full window. Here outliers stay out of the window.
class SpikeDetector {
 public:
  /// Lower bound of the deviation, as a share of the mean: the deviation of a nearly constant loss is meaningless.
  static constexpr double kDeviationFloor = 0.01;

  explicit SpikeDetector(std::int64_t window) : window_(static_cast<std::size_t>(window)) {}

  /// In standard deviations, negative below the mean; nothing until the window is full.
  std::optional<double> z_score(double value) const;
  void add(double value);

  core::Node state() const;
  void restore(const core::Node& state);

 private:
  std::size_t window_;
  std::deque<double> values_;  ///< oldest first
};

}  // namespace runner::train
