#include <algorithm>
#include <utility>

#include "runner/review/sweep/charts.h"
#include "runner/sweep/analysis/importance.h"

namespace runner::review {

std::vector<Importance> importance_of(const SweepHistory& history, std::uint64_t seed) {
  std::vector<std::vector<double>> points;
  std::vector<double> values;
  for (const Measured& one : measured(history)) {
    points.push_back(history.variants[one.variant].point);
    values.push_back(one.value);
  }
  const auto& dimensions = history.sweep.space().dimensions();
  const auto shares = sweep::importances(dimensions, points, values, {.seed = seed});
  std::vector<Importance> list;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (shares[i]) list.push_back({i, dimensions[i].name, *shares[i]});
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return list;
}

Picture importance_picture(const SweepHistory& history, const std::vector<Importance>& list) {
  chart::Chart chart;
  chart.options.title = "importance of parameters for " + history.sweep.metric() + ", " + history.name;
  chart.options.x_title = "fraction of the variance, by fANOVA";
  chart::Curve bars;
  bars.mark = chart::Curve::Mark::kBars;
  for (auto one = list.rbegin(); one != list.rend(); ++one) {  // the first one is at the top
    const auto y = static_cast<double>(chart.options.y_names.size());
    chart.options.y_names.push_back(one->name);
    bars.points.emplace_back(0, y);
    bars.points.emplace_back(one->share, y);
  }
  chart.curves = {std::move(bars)};
  return {{std::move(chart)}};
}

std::vector<std::size_t> parameters_to_plot(const SweepHistory& history, std::size_t most) {
  const auto& dimensions = history.sweep.space().dimensions();
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].count() != 1) chosen.push_back(i);
  }
  if (most == 0 || chosen.size() <= most) return chosen;
  const std::vector<Importance> importance = importance_of(history);
  const auto place = [&importance](std::size_t dimension) {
    return std::find_if(importance.begin(), importance.end(),
                        [dimension](const Importance& one) { return one.dimension == dimension; });
  };
  std::stable_sort(chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace runner::review
