#include <algorithm>
#include <set>

#include "runner/review/sweep/charts.h"

namespace runner::review {
namespace {

using sweep::VariantSummary;
using Points = std::vector<std::pair<double, double>>;

double value_of(const VariantSummary& summary, std::size_t objective) {
  return objective == 0 ? *summary.value : summary.others[objective - 1];
}

std::string axis_name(const sweep::Metric& objective) {
  return objective.name + (objective.maximize ? " (larger is better)" : "");
}

/// Between two neighbours of a front goes the corner that has the worse of both.
Points border_of(const Points& front, const sweep::Metric& x, const sweep::Metric& y) {
  const auto worse = [](const sweep::Metric& objective, double a, double b) {
    return objective.maximize ? std::min(a, b) : std::max(a, b);
  };
  Points border;
  for (const auto& [next_x, next_y] : front) {
    if (!border.empty())
      border.emplace_back(worse(x, border.back().first, next_x), worse(y, border.back().second, next_y));
    border.emplace_back(next_x, next_y);
  }
  return border;
}

chart::Chart chart_of(const SweepHistory& history, std::size_t x, std::size_t y) {
  const auto& objectives = history.sweep.objectives();
  const auto point = [x, y](const VariantSummary& summary) {
    return std::pair(value_of(summary, x), value_of(summary, y));
  };
  chart::Curve front{.label = "Pareto front", .mark = chart::Curve::Mark::kDots};
  std::set<std::int64_t> on_front;
  for (const VariantSummary& summary : front_of(history.sweep, history.summaries)) {
    on_front.insert(summary.variant);
    front.points.push_back(point(summary));
  }
  std::sort(front.points.begin(), front.points.end());
  chart::Curve others{.label = "other variants", .mark = chart::Curve::Mark::kDots};
  for (const VariantSummary& summary : history.summaries) {
    if (summary.state != sweep::TrialState::kComplete || !summary.value || on_front.contains(summary.variant)) continue;
    others.points.push_back(point(summary));
  }
  chart::Chart chart;
  chart.options.title = axis_name(objectives[y]) + " over " + axis_name(objectives[x]) + ", " + history.name;
  chart.options.x_title = axis_name(objectives[x]);
  // That of three objectives is a surface, of which two of them show the shadow.
  if (objectives.size() == 2 && !front.points.empty() && front.points.front() != front.points.back())
    chart.curves.push_back(
        {.label = "border of the front", .points = border_of(front.points, objectives[x], objectives[y])});
  if (!others.points.empty()) chart.curves.push_back(std::move(others));
  chart.curves.push_back(std::move(front));
  return chart;
}

}  // namespace

Picture pareto_picture(const SweepHistory& history) {
  Picture picture;
  const std::size_t count = history.sweep.objectives().size();
  for (std::size_t x = 0; x < count; ++x) {
    for (std::size_t y = x + 1; y < count; ++y) picture.charts.push_back(chart_of(history, x, y));
  }
  return picture;
}

}  // namespace runner::review
