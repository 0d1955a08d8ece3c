#include <algorithm>
#include <cmath>

#include "runner/cli/sweep_charts.h"

namespace runner::cli {
namespace {

using sweep::VariantStanding;

double value_of(const VariantStanding& standing, std::size_t objective) {
  return objective == 0 ? *standing.value : standing.others[objective - 1];
}

Chart chart_of(const SweepHistory& history, std::size_t x, std::size_t y) {
  const auto& objectives = history.sweep.objectives();
  Curve all{.label = "variants", .mark = Curve::Mark::kDots}, best{.label = "than which no other one is better"};
  for (const VariantStanding& standing : history.standings) {
    if (standing.state != sweep::TrialState::kComplete || !standing.value) continue;
    all.points.emplace_back(value_of(standing, x), value_of(standing, y));
  }
  for (const VariantStanding& standing : front_of(history.sweep, history.standings))
    best.points.emplace_back(value_of(standing, x), value_of(standing, y));
  std::sort(best.points.begin(), best.points.end());
  if (objectives.size() > 2) best.mark = Curve::Mark::kDots;  // a front of three is no line between two of them
  Chart chart;
  chart.options.title = objectives[y].name + " over " + objectives[x].name + ", " + history.name;
  chart.options.x_title = objectives[x].name;
  chart.curves = {std::move(all), std::move(best)};
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

}  // namespace runner::cli
