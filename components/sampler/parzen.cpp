#include "components/sampler/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace components::sampler {
namespace {

constexpr double kScott = 0.2;            // of the range, before the rule makes it narrower
constexpr std::size_t kFullWeights = 25;  // the newest, all alike; older ones count less and less
constexpr double kNormalReach = 4;        // deviations that a normal distribution is modelled over

/// Where a value lies on the line.
double on_line(const Dimension& d, double value) { return d.log ? std::log(value) : value; }

double grain(const Dimension& d) {
  if (d.step > 0) return d.step;
  return d.kind == Dimension::Kind::kInteger ? 1 : 0;
}

double from_line(const Dimension& d, double x) {
  const double value = d.log ? std::exp(x) : x;
  if (d.kind == Dimension::Kind::kNormal) {
    return d.step > 0 ? std::round(value / d.step) * d.step : value;
  }
  if (grain(d) == 0) return std::clamp(value, d.min, d.max);
  const double last = std::floor((d.max - d.min) / grain(d) + 1e-9);  // not count(), which gives up on very many
  return d.nth(static_cast<std::int64_t>(std::clamp(std::round((value - d.min) / grain(d)), 0.0, last)));
}

double cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// The share of a normal distribution between two bounds, exact in both tails.
double mass(double a, double b) { return a > 0 ? cdf(-a) - cdf(-b) : cdf(b) - cdf(a); }

/// Newest last.
std::vector<double> weights_by_age(std::size_t count) {
  std::vector<double> weights(count, 1.0);
  if (count < kFullWeights) return weights;
  const std::size_t ramp = count - kFullWeights;
  for (std::size_t i = 0; i < ramp; ++i) {
    const double first = 1.0 / static_cast<double>(count);
    weights[i] = ramp == 1 ? first : first + (1 - first) * static_cast<double>(i) / static_cast<double>(ramp - 1);
  }
  return weights;
}

}  // namespace

Parzen::Parzen(const Space& space, std::vector<std::size_t> dimensions, const std::vector<const Point*>& points,
               double prior_weight) {
  const std::size_t count = points.size();
  weights_ = weights_by_age(count);
  weights_.push_back(prior_weight);
  const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= total;
  const double narrowing = std::pow(static_cast<double>(std::max<std::size_t>(count, 1)),
                                    -1.0 / (static_cast<double>(dimensions.size()) + 4));
  for (const std::size_t index : dimensions) {
    Axis axis{index, &space.dimensions()[index], 0, 0, 1, {}, {}};
    const Dimension& d = *axis.dimension;
    if (d.kind == Dimension::Kind::kChoice) {
      const auto choices = static_cast<std::size_t>(d.choices);
      const double base = prior_weight / static_cast<double>(count + 1);
      for (const Point* point : points) {
        std::vector<double> row(choices, base);
        row[static_cast<std::size_t>((*point)[index])] += 1;
        for (double& p : row) p /= 1 + base * static_cast<double>(choices);
        axis.probabilities.push_back(std::move(row));
      }
      axis.probabilities.emplace_back(choices, 1.0 / static_cast<double>(choices));
      axes_.push_back(std::move(axis));
      continue;
    }
    if (d.kind == Dimension::Kind::kNormal) {
      axis.low = d.mu - kNormalReach * d.sigma;
      axis.high = d.mu + kNormalReach * d.sigma;
    } else {
      const double half = grain(d) / 2;
      axis.low = on_line(d, d.log ? std::max(d.min - half, d.min / 2) : d.min - half);
      axis.high = on_line(d, d.max + half);
    }
    const double range = axis.high - axis.low;
    const double least = range / std::min(100.0, 2.0 + static_cast<double>(count));
    axis.sigma = std::clamp(kScott * narrowing * range, least, range);
    for (const Point* point : points) axis.centres.push_back(on_line(d, (*point)[index]));
    axis.centres.push_back((axis.low + axis.high) / 2);
    axes_.push_back(std::move(axis));
  }
}

double Parzen::sigma_of(const Axis& axis, std::size_t kernel) const {
  return kernel + 1 == weights_.size() ? axis.high - axis.low : axis.sigma;
}

void Parzen::draw(Draws& draws, Point& point) const {
  double u = draws.uniform();
  std::size_t kernel = 0;
  while (kernel + 1 < weights_.size() && u >= weights_[kernel]) u -= weights_[kernel++];
  for (const Axis& axis : axes_) point[axis.index] = draw_axis(axis, kernel, draws);
}

double Parzen::draw_axis(const Axis& axis, std::size_t kernel, Draws& draws) const {
  double u = draws.uniform();
  if (axis.dimension->kind == Dimension::Kind::kChoice) {
    const std::vector<double>& p = axis.probabilities[kernel];
    std::size_t choice = 0;
    while (choice + 1 < p.size() && u >= p[choice]) u -= p[choice++];
    return static_cast<double>(choice);
  }
  const double sigma = sigma_of(axis, kernel), centre = axis.centres[kernel];
  const double below = cdf((axis.low - centre) / sigma), above = cdf((axis.high - centre) / sigma);
  constexpr double kTiny = std::numeric_limits<double>::epsilon();
  const double share = std::clamp(below + u * (above - below), kTiny, 1 - kTiny);
  return from_line(*axis.dimension, std::clamp(centre + sigma * inverse_normal(share), axis.low, axis.high));
}

double Parzen::log_of_axis(const Axis& axis, std::size_t kernel, double value) const {
  const Dimension& d = *axis.dimension;
  if (d.kind == Dimension::Kind::kChoice) return std::log(axis.probabilities[kernel][static_cast<std::size_t>(value)]);
  const double sigma = sigma_of(axis, kernel), centre = axis.centres[kernel];
  const double all = mass((axis.low - centre) / sigma, (axis.high - centre) / sigma);
  if (const double half = grain(d) / 2; half > 0) {
    const double low = std::max(axis.low, d.log && value <= half ? axis.low : on_line(d, value - half));
    const double high = std::min(axis.high, on_line(d, value + half));
    return std::log(std::max(mass((low - centre) / sigma, (high - centre) / sigma) / all, 1e-300));
  }
  const double z = (on_line(d, value) - centre) / sigma;
  return -0.5 * z * z - std::log(sigma * std::sqrt(2 * std::numbers::pi)) - std::log(all);
}

double Parzen::log_density(const Point& point) const {
  std::vector<double> logs(weights_.size());
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t kernel = 0; kernel < weights_.size(); ++kernel) {
    logs[kernel] = std::log(weights_[kernel]);
    for (const Axis& axis : axes_) logs[kernel] += log_of_axis(axis, kernel, point[axis.index]);
    most = std::max(most, logs[kernel]);
  }
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - most);
  return most + std::log(sum);
}

}  // namespace components::sampler
