#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "runner/core/node.h"

namespace runner::train {

/// How far a figure lies above what it was in the last steps. A pure function of the values it was given, in their
/// order, so a resumed run judges as an undisturbed one would.
///
/// Source  llm.c, OutlierDetector: mean and deviation over a full window. Ours leaves outliers out of the window.
class SpikeDetector {
 public:
  /// A deviation counts as at least this share of the mean: a loss that hardly moves any more has no meaningful one.
  static constexpr double kDeviationFloor = 0.01;

  explicit SpikeDetector(std::int64_t window) : window_(static_cast<std::size_t>(window)) {}

  /// In standard deviations, negative below the mean; nothing while the window is not full.
  std::optional<double> z_score(double value) const;
  void add(double value);

  core::Node state() const;
  void restore(const core::Node& state);

 private:
  std::size_t window_;
  std::deque<double> values_;  ///< oldest first
};

}  // namespace runner::train
