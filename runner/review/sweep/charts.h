#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/review/plot_file.h"
#include "runner/sweep/studies.h"
#include "runner/sweep/study/variant_summary.h"

namespace runner::review {

/// A snapshot of a sweep for plots.
struct SweepHistory {
  const sweep::Sweep& sweep;
  std::string name;
  std::vector<sweep::Variant> variants;
  std::vector<sweep::Trial> trials;
  std::vector<sweep::VariantSummary> summaries;
  std::vector<std::vector<store::SeriesPoint>> curves;  ///< of each trial so far
  std::int64_t now_ms = 0;
};
SweepHistory read_history(const sweep::OpenSweep& open, const core::Clock& clock);

/// A completed variant with a value.
struct Measured {
  std::size_t variant;
  double value;
};
std::vector<Measured> measured(const SweepHistory& history);

/// The importance of a dimension, from 0 to 1.
struct Importance {
  std::size_t dimension;
  std::string name;
  double share;
};
/// The largest first; without dimensions that some variants lack.
std::vector<Importance> importance_of(const SweepHistory& history, std::uint64_t seed = 0);

/// A bar chart.
Picture importance_picture(const SweepHistory& history, const std::vector<Importance>& list);
/// Positions of the dimensions with more than one value; at most the `most` important ones (0: all).
std::vector<std::size_t> parameters_to_plot(const SweepHistory& history, std::size_t most = 0);

// One function per kind of `roux sweep plot`. `parameters`: positions of dimensions.

Picture history_picture(const SweepHistory& history);
Picture intermediate_picture(const SweepHistory& history);
Picture edf_picture(const SweepHistory& history);
Picture timeline_picture(const SweepHistory& history);
/// Of each pair of objectives.
Picture pareto_picture(const SweepHistory& history);
Picture parallel_picture(const SweepHistory& history, const std::vector<std::size_t>& parameters);
Picture slice_picture(const SweepHistory& history, const std::vector<std::size_t>& parameters);
/// Of each pair of parameters.
Picture contour_picture(const SweepHistory& history, const std::vector<std::size_t>& parameters);
Picture rank_picture(const SweepHistory& history, const std::vector<std::size_t>& parameters);

}  // namespace runner::review
