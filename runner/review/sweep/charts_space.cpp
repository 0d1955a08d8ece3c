#include <algorithm>
#include <cmath>
#include <limits>

#include "runner/review/sweep/charts.h"

namespace runner::review {
namespace {

using sweep::Dimension;

constexpr int kPanelWidth = 480, kPanelHeight = 360, kPanelsBeside = 3;
constexpr int kFieldColumns = 48, kFieldRows = 32;
constexpr double kFieldBlur = 0.003;  // of a squared distance: a spot is no needle
constexpr double kWorstShare = 0.9;   // quantile above which values share the lightest shade: an outlier hides nothing

/// A parameter as an axis.
class ParameterAxis {
 public:
  ParameterAxis(const SweepHistory& history, std::size_t index)
      : dimension_(history.sweep.space().dimensions()[index]), low_(dimension_.min), high_(dimension_.max) {
    if (dimension_.kind == Dimension::Kind::kChoice) {
      for (std::int64_t i = 0; i < dimension_.choices; ++i)
        names_.push_back(history.sweep.space().value_text(index, static_cast<double>(i)));
      low_ = -0.5;
      high_ = static_cast<double>(dimension_.choices) - 0.5;
    }
    if (dimension_.kind == Dimension::Kind::kNormal) span_values(history, index);
    for (double* end : {&low_, &high_}) *end = on_axis(*end);
  }

  const std::string& name() const { return dimension_.name; }
  const std::vector<std::string>& names() const { return names_; }
  bool logarithmic() const { return dimension_.log && names_.empty(); }
  /// 0 at the least value, 1 at the largest.
  double share(double value) const { return high_ > low_ ? (on_axis(value) - low_) / (high_ - low_) : 0.5; }
  std::pair<double, double> range() const {
    return logarithmic() ? std::pair(std::exp(low_), std::exp(high_)) : std::pair(low_, high_);
  }

 private:
  double on_axis(double value) const { return logarithmic() ? std::log(value) : value; }
  /// Around a mean there is no end: the values that there are make one.
  void span_values(const SweepHistory& history, std::size_t index) {
    low_ = std::numeric_limits<double>::infinity();
    high_ = -low_;
    for (const sweep::Variant& variant : history.variants) {
      if (std::isnan(variant.point[index])) continue;
      low_ = std::min(low_, variant.point[index]);
      high_ = std::max(high_, variant.point[index]);
    }
    if (low_ > high_) low_ = high_ = logarithmic() ? 1 : 0;
  }

  const Dimension& dimension_;
  std::vector<std::string> names_;
  double low_, high_;  ///< logarithms where it is logarithmic
};

/// What a value is in shades: the best is the darkest.
class ValueShades {
 public:
  ValueShades(const SweepHistory& history, const std::vector<Measured>& list) : sweep_(history.sweep) {
    std::vector<double> values;
    for (const Measured& one : list) values.push_back(sweep_.signed_value(one.value));
    std::sort(values.begin(), values.end());
    if (values.empty()) return;
    best_ = values.front();
    worst_ = values[static_cast<std::size_t>(kWorstShare * static_cast<double>(values.size() - 1))];
  }

  double of(double value) const {
    if (!(worst_ > best_)) return 1;
    return 1 - std::clamp((sweep_.signed_value(value) - best_) / (worst_ - best_), 0.0, 1.0);
  }
  chart::ChartScale scale() const {
    return {sweep_.metric(), (sweep_.maximizes() ? "<= " : ">= ") + terminal::number_text(sweep_.signed_value(worst_)),
            terminal::number_text(sweep_.signed_value(best_))};
  }

 private:
  const sweep::Sweep& sweep_;
  double best_ = 0, worst_ = 0;
};

/// The darkest last, so that they are seen.
std::vector<Measured> worst_first(const SweepHistory& history) {
  std::vector<Measured> list = measured(history);
  std::stable_sort(list.begin(), list.end(), [&history](const Measured& a, const Measured& b) {
    return history.sweep.signed_value(a.value) > history.sweep.signed_value(b.value);
  });
  return list;
}

chart::Curve dot(double x, double y, double shade) {
  chart::Curve curve;
  curve.points = {{x, y}};
  curve.mark = chart::Curve::Mark::kDots;
  curve.shade = shade;
  return curve;
}

/// An axis for each of a pair of parameters.
chart::Chart plane_of(const ParameterAxis& x, const ParameterAxis& y) {
  chart::Chart chart;
  chart.options.title = y.name() + " over " + x.name();
  chart.options.x_title = x.name();
  chart.options.log_x = x.logarithmic();
  chart.options.log_y = y.logarithmic();
  chart.options.x_names = x.names();
  chart.options.y_names = y.names();
  chart.options.x_range = x.range();
  chart.options.y_range = y.range();
  chart.options.width = kPanelWidth + 120;
  chart.options.height = kPanelHeight;
  return chart;
}

struct Spot {
  double x, y;  ///< shares of the axes
  double shade;
};

/// Between the spots: each counts by one over the square of its distance (Shepard).
chart::ChartField field_of(const std::vector<Spot>& spots) {
  chart::ChartField field{kFieldColumns, kFieldRows, {}};
  for (int row = 0; row < kFieldRows; ++row) {
    for (int column = 0; column < kFieldColumns; ++column) {
      const double x = (column + 0.5) / kFieldColumns, y = (row + 0.5) / kFieldRows;
      double sum = 0, weights = 0;
      for (const Spot& spot : spots) {
        const double weight = 1 / ((spot.x - x) * (spot.x - x) + (spot.y - y) * (spot.y - y) + kFieldBlur);
        sum += weight * spot.shade;
        weights += weight;
      }
      field.shades.push_back(sum / weights);
    }
  }
  return field;
}

/// Calls `chart_of(x, y)` for each pair.
template <typename ChartOf>
Picture of_pairs(const std::vector<std::size_t>& parameters, const ChartOf& chart_of) {
  Picture picture;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (std::size_t k = i + 1; k < parameters.size(); ++k)
      picture.charts.push_back(chart_of(parameters[i], parameters[k]));
  }
  picture.columns = std::min(static_cast<int>(picture.charts.size()), kPanelsBeside);
  return picture;
}

}  // namespace

Picture parallel_picture(const SweepHistory& history, const std::vector<std::size_t>& parameters) {
  const std::vector<Measured> list = worst_first(history);
  const ValueShades shades(history, list);
  chart::Chart chart;
  chart.options.title = "variants of " + history.name;
  chart.options.x_title = "";
  chart.options.x_names = {history.sweep.metric()};
  chart.options.y_range = {-0.05, 1.05};
  chart.options.y_ticks = false;
  chart.scale = shades.scale();
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Measured& one : list) low = std::min(low, one.value), high = std::max(high, one.value);
  if (!list.empty()) chart.notes = {{0, 0, terminal::number_text(low)}, {0, 1, terminal::number_text(high)}};
  std::vector<ParameterAxis> axes;
  for (const std::size_t index : parameters) {
    const ParameterAxis& axis = axes.emplace_back(history, index);
    const auto x = static_cast<double>(axes.size());
    chart.options.x_names.push_back(axis.name());
    for (std::size_t i = 0; i < axis.names().size(); ++i)
      chart.notes.push_back({x, axis.share(static_cast<double>(i)), axis.names()[i]});
    if (!axis.names().empty()) continue;
    chart.notes.push_back({x, 0, terminal::number_text(axis.range().first)});
    chart.notes.push_back({x, 1, terminal::number_text(axis.range().second)});
  }
  for (const Measured& one : list) {
    chart::Curve curve;
    curve.shade = shades.of(one.value);
    curve.points.emplace_back(0, high > low ? (one.value - low) / (high - low) : 0.5);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const double value = history.variants[one.variant].point[parameters[i]];
      curve.points.emplace_back(static_cast<double>(i + 1), axes[i].share(value));  // NaN of what plays no part: a gap
    }
    chart.curves.push_back(std::move(curve));
  }
  return {{std::move(chart)}};
}

Picture slice_picture(const SweepHistory& history, const std::vector<std::size_t>& parameters) {
  const std::vector<Measured> list = measured(history);
  Picture picture;
  for (const std::size_t index : parameters) {
    const ParameterAxis axis(history, index);
    chart::Chart chart;
    chart.options.title = history.sweep.metric() + " over " + axis.name();
    chart.options.x_title = axis.name();
    chart.options.log_x = axis.logarithmic();
    chart.options.x_names = axis.names();
    chart.options.x_range = axis.range();
    chart.options.width = kPanelWidth + 120;
    chart.options.height = kPanelHeight;
    const auto last = std::max<double>(static_cast<double>(history.variants.size()) - 1, 1);
    chart.scale = {"variant", "0", terminal::number_text(last)};
    for (const Measured& one : list) {
      const double value = history.variants[one.variant].point[index];
      if (!std::isnan(value)) chart.curves.push_back(dot(value, one.value, static_cast<double>(one.variant) / last));
    }
    picture.charts.push_back(std::move(chart));
  }
  picture.columns = std::min(static_cast<int>(picture.charts.size()), kPanelsBeside);
  return picture;
}

Picture contour_picture(const SweepHistory& history, const std::vector<std::size_t>& parameters) {
  const std::vector<Measured> list = worst_first(history);
  const ValueShades shades(history, list);
  return of_pairs(parameters, [&](std::size_t i, std::size_t k) {
    const ParameterAxis x(history, i), y(history, k);
    chart::Chart chart = plane_of(x, y);
    chart.scale = shades.scale();
    chart::Curve variants;
    variants.mark = chart::Curve::Mark::kDots;
    std::vector<Spot> spots;
    for (const Measured& one : list) {
      const auto& point = history.variants[one.variant].point;
      if (std::isnan(point[i]) || std::isnan(point[k])) continue;
      spots.push_back({x.share(point[i]), y.share(point[k]), shades.of(one.value)});
      variants.points.emplace_back(point[i], point[k]);
    }
    if (!spots.empty()) chart.field = field_of(spots);
    chart.curves = {std::move(variants)};
    return chart;
  });
}

Picture rank_picture(const SweepHistory& history, const std::vector<std::size_t>& parameters) {
  const std::vector<Measured> list = worst_first(history);
  const auto worst = std::max<double>(static_cast<double>(list.size()) - 1, 1);
  return of_pairs(parameters, [&](std::size_t i, std::size_t k) {
    chart::Chart chart = plane_of({history, i}, {history, k});
    chart.scale = {"rank", "worst", "best"};
    for (std::size_t at = 0; at < list.size(); ++at) {
      const auto& point = history.variants[list[at].variant].point;
      if (std::isnan(point[i]) || std::isnan(point[k])) continue;
      chart.curves.push_back(dot(point[i], point[k], list.size() == 1 ? 1 : static_cast<double>(at) / worst));
    }
    return chart;
  });
}

}  // namespace runner::review
