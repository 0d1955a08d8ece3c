#include "components/sampler/math/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

namespace components::sampler {
namespace {

constexpr std::size_t kFullWeights = 25;  // the newest, all alike; older ones count less and less
constexpr double kLogNothing = -40;       // e^-40 beside 1 is lost in the last digit
constexpr double kLeastMass = 1e-300;
constexpr double kLogLeastMass = -690.77;

double cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// The share of a normal distribution between two bounds, exact in both tails.
double mass(double a, double b) { return a > 0 ? cdf(-a) - cdf(-b) : cdf(b) - cdf(a); }

/// The interval of the line around `value`, where values have a step.
std::pair<double, double> segment_of(const Dimension& d, const NumericAxis& line, double value) {
  const double half = line.step() / 2;
  const double low = d.log && value <= half ? line.low() : std::max(line.low(), line.at(value - half));
  return {low, std::min(line.high(), line.at(value + half))};
}

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

/// How far each centre is from the neighbour that is further away; of the outermost, from their only one.
std::vector<double> widths(const std::vector<double>& centres, double low, double high) {
  const std::size_t count = centres.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return centres[a] < centres[b]; });
  const double range = high - low;
  const double least = range / std::min(100.0, 2.0 + static_cast<double>(count));
  std::vector<double> sigmas(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool first = i == 0, last = i + 1 == count;
    const double before = !first ? centres[order[i]] - centres[order[i - 1]] : last ? centres[order[i]] - low : 0;
    const double after = !last ? centres[order[i + 1]] - centres[order[i]] : first ? high - centres[order[i]] : 0;
    sigmas[order[i]] = std::clamp(std::max(before, after), least, range);
  }
  return sigmas;
}

}  // namespace

Parzen::Parzen(const Space& space, const std::vector<std::size_t>& dimensions, const std::vector<const Point*>& points,
               double prior_weight) {
  weights_ = weights_by_age(points.size());
  weights_.push_back(prior_weight);
  const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) {
    weight /= total;
    log_weights_.push_back(std::log(weight));
  }
  for (const std::size_t index : dimensions) {
    Axis axis;
    axis.index = index;
    axis.dimension = &space.dimensions()[index];
    if (axis.dimension->kind == Dimension::Kind::kChoice) {
      set_choice(axis, points, prior_weight);
    } else {
      axis.line.emplace(*axis.dimension);
      set_line(axis, points);
    }
    axes_.push_back(std::move(axis));
  }
}

/// Each kernel is its variant's choice, and the prior's share of all of them.
void Parzen::set_choice(Axis& axis, const std::vector<const Point*>& points, double prior_weight) const {
  const auto choices = static_cast<double>(axis.dimension->choices);
  const double base = prior_weight / static_cast<double>(weights_.size());
  axis.hit = (1 + base) / (1 + base * choices);
  axis.log_hit = std::log(axis.hit);
  axis.log_miss = std::log(base / (1 + base * choices));
  for (const Point* point : points) axis.centres.push_back((*point)[axis.index]);
  axis.centres.push_back(-1);
}

void Parzen::set_line(Axis& axis, const std::vector<const Point*>& points) {
  const NumericAxis& line = *axis.line;
  for (const Point* point : points) axis.centres.push_back(line.at((*point)[axis.index]));
  axis.sigmas = widths(axis.centres, line.low(), line.high());
  axis.centres.push_back((line.low() + line.high()) / 2);
  axis.sigmas.push_back(line.high() - line.low());
  const bool stepped = line.step() > 0;
  std::map<std::pair<double, double>, std::size_t> known;
  for (std::size_t kernel = 0; kernel < axis.centres.size(); ++kernel) {
    const double centre = axis.centres[kernel], sigma = axis.sigmas[kernel];
    const double all = std::log(mass((line.low() - centre) / sigma, (line.high() - centre) / sigma));
    // A density over the line, or the probability of a value's interval.
    axis.log_norms.push_back(stepped ? -all : -all - std::log(sigma * std::sqrt(2 * std::numbers::pi)));
    if (!stepped) continue;
    const auto [form, is_new] = known.try_emplace({centre, sigma}, axis.distinct.size());
    if (is_new) axis.distinct.push_back(kernel);
    axis.forms.push_back(form->second);
  }
}

void Parzen::draw(CounterRng& rng, Point& point) const {
  double u = rng.uniform();
  std::size_t kernel = 0;
  while (kernel + 1 < weights_.size() && u >= weights_[kernel]) u -= weights_[kernel++];
  for (const Axis& axis : axes_) point[axis.index] = draw_axis(axis, kernel, rng);
}

double Parzen::draw_axis(const Axis& axis, std::size_t kernel, CounterRng& rng) {
  const double u = rng.uniform(), centre = axis.centres[kernel];
  if (axis.dimension->kind == Dimension::Kind::kChoice) {
    const auto choices = static_cast<double>(axis.dimension->choices);
    if (centre < 0) return std::min(std::floor(u * choices), choices - 1);
    if (u < axis.hit || choices < 2) return centre;
    const double other = std::min(std::floor((u - axis.hit) / (1 - axis.hit) * (choices - 1)), choices - 2);
    return other < centre ? other : other + 1;
  }
  const double sigma = axis.sigmas[kernel];
  const NumericAxis& line = *axis.line;
  const double below = cdf((line.low() - centre) / sigma), above = cdf((line.high() - centre) / sigma);
  constexpr double kTiny = std::numeric_limits<double>::epsilon();
  const double share = std::clamp(below + u * (above - below), kTiny, 1 - kTiny);
  return line.value(std::clamp(centre + sigma * inverse_normal(share), line.low(), line.high()));
}

/// Adds the logarithm of each kernel at `value`, of those that count.
void Parzen::add_logs(const Axis& axis, double value, const std::vector<bool>& counts, std::vector<double>& logs) {
  const Dimension& d = *axis.dimension;
  const std::size_t count = logs.size();
  if (d.kind == Dimension::Kind::kChoice) {
    for (std::size_t kernel = 0; kernel + 1 < count; ++kernel) {
      logs[kernel] += axis.centres[kernel] == value ? axis.log_hit : axis.log_miss;
    }
    logs.back() -= std::log(static_cast<double>(d.choices));
    return;
  }
  const NumericAxis& line = *axis.line;
  if (line.step() == 0) {
    const double x = line.at(value);
    for (std::size_t kernel = 0; kernel < count; ++kernel) {
      const double z = (x - axis.centres[kernel]) / axis.sigmas[kernel];
      logs[kernel] += axis.log_norms[kernel] - 0.5 * z * z;
    }
    return;
  }
  const auto [low, high] = segment_of(d, line, value);
  std::vector<double> of_form(axis.distinct.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t kernel = 0; kernel < count; ++kernel) {
    if (!counts[kernel]) continue;
    double& log = of_form[axis.forms[kernel]];
    if (std::isnan(log)) {
      const double centre = axis.centres[kernel], sigma = axis.sigmas[kernel];
      log = std::log(std::max(mass((low - centre) / sigma, (high - centre) / sigma), kLeastMass));
    }
    logs[kernel] += axis.log_norms[kernel] + log;
  }
}

/// Without those that are lost in the last digit beside the kernel of the space, by bounds that cost little: two error
/// functions for each of the others is what a proposal would cost else.
std::vector<bool> Parzen::kernels_that_count(const Point& point) const {
  const std::size_t count = log_weights_.size();
  std::vector<bool> counts(count, true);
  const auto has_step = [](const Axis& axis) { return axis.line && axis.line->step() > 0; };
  if (std::none_of(axes_.begin(), axes_.end(), has_step)) return counts;
  std::vector<double> most = log_weights_;  // of a kernel, but of the last one what it is at least
  for (const Axis& axis : axes_) {
    const double value = point[axis.index];
    if (!has_step(axis)) {
      add_logs(axis, value, {}, most);
      continue;
    }
    const auto [low, high] = segment_of(*axis.dimension, *axis.line, value);
    for (std::size_t kernel = 0; kernel + 1 < count; ++kernel) {
      const double away =
          std::max({0.0, low - axis.centres[kernel], axis.centres[kernel] - high}) / axis.sigmas[kernel];
      most[kernel] += axis.log_norms[kernel] + std::max(-0.5 * away * away, kLogLeastMass);
    }
    const double centre = axis.centres.back(), sigma = axis.sigmas.back();
    const double share = mass((low - centre) / sigma, (high - centre) / sigma);
    most.back() += axis.log_norms.back() + std::log(std::max(share, kLeastMass));
  }
  constexpr double kDoubt = 1;  // far more than what rounding may take
  for (std::size_t kernel = 0; kernel + 1 < count; ++kernel) {
    counts[kernel] = most[kernel] > most.back() + kLogNothing - kDoubt;
  }
  return counts;
}

double Parzen::log_density(const Point& point) const {
  const std::vector<bool> counts = kernels_that_count(point);
  std::vector<double> logs = log_weights_;
  for (const Axis& axis : axes_) add_logs(axis, point[axis.index], counts, logs);
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t kernel = 0; kernel < logs.size(); ++kernel) {
    if (counts[kernel]) most = std::max(most, logs[kernel]);
  }
  double sum = 0;
  for (std::size_t kernel = 0; kernel < logs.size(); ++kernel) {
    if (counts[kernel] && logs[kernel] - most > kLogNothing) sum += std::exp(logs[kernel] - most);
  }
  return most + std::log(sum);
}

}  // namespace components::sampler
