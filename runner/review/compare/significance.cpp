#include "runner/review/compare/significance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace runner::review {
namespace {

constexpr int kFractionStepsMax = 300;
constexpr double kTiny = 1e-300;
constexpr std::size_t kExactMax = 20;

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.
double beta_fraction(double a, double b, double x) {
  const auto away_from_0 = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_0(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m <= kFractionStepsMax; ++m) {
    const auto step = [&](double coefficient) {
      d = 1 / away_from_0(1 + coefficient * d);
      c = away_from_0(1 + coefficient / c);
      fraction *= c * d;
      return std::fabs(c * d - 1) < 1e-16;
    };
    step(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)));
    if (step(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)))) break;
  }
  return fraction;
}

/// I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/// P(|T| >= |t|).
double two_sided(double t, double degrees) { return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)); }

double normal_two_sided(double z) { return std::erfc(std::fabs(z) / std::sqrt(2.0)); }

/// Twice the ranks of all values; equal ones share the mean of theirs.
std::vector<std::int64_t> double_ranks(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> ranks;
  for (const double value : values) {
    const auto [first, end] = std::equal_range(sorted.begin(), sorted.end(), value);
    ranks.push_back((first - sorted.begin() + 1) + (end - sorted.begin()));
  }
  return ranks;
}

/// How many of all ways to choose `count` of the ranks have each sum, as shares.
std::vector<double> rank_sum_shares(const std::vector<std::int64_t>& ranks, std::size_t count) {
  const auto most = static_cast<std::size_t>(std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0}));
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(most + 1));
  ways[0][0] = 1;
  for (const std::int64_t rank : ranks) {
    const auto step = static_cast<std::size_t>(rank);
    for (std::size_t chosen = count; chosen > 0; --chosen) {
      for (std::size_t sum = most + 1; sum-- > step;) ways[chosen][sum] += ways[chosen - 1][sum - step];
    }
  }
  const double all = std::accumulate(ways[count].begin(), ways[count].end(), 0.0);
  for (double& share : ways[count]) share /= all;
  return std::move(ways[count]);
}

/// The sum over groups of equal values of n^3 - n.
double ties_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (std::size_t begin = 0; begin < values.size();) {
    const auto end = std::upper_bound(values.begin() + static_cast<std::ptrdiff_t>(begin), values.end(), values[begin]);
    const double n = static_cast<double>(end - values.begin()) - static_cast<double>(begin);
    sum += n * n * n - n;
    begin += static_cast<std::size_t>(n);
  }
  return sum;
}

/// Of equal values it is that value to the last bit: what was rounded would look like a spread.
double mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (std::equal(values.begin() + 1, values.end(), values.begin())) return values.front();
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (std::isfinite(sum)) return sum / n;
  double mean = 0;
  for (const double value : values) mean += value / n;
  return mean;
}

}  // namespace

double student_t_below(double t, double degrees) {
  const double beyond = two_sided(t, degrees) / 2;
  return t > 0 ? 1 - beyond : beyond;
}

double student_t_quantile(double p, double degrees) {
  double low = 0, high = 1;
  while (student_t_below(high, degrees) < p && high < 1e12) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-13 * high; ++i) {
    const double middle = (low + high) / 2;
    (student_t_below(middle, degrees) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  spread.n = static_cast<int>(values.size());
  spread.deviation = spread.half_width = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) {
    spread.mean = std::numeric_limits<double>::quiet_NaN();
    return spread;
  }
  const double n = spread.n;
  spread.mean = mean_of(values);
  if (values.size() < 2) return spread;
  double furthest = 0, squares = 0;
  for (const double value : values) furthest = std::max(furthest, std::fabs(value - spread.mean));
  // In parts of the furthest: the square of a diverged loss is beyond a double.
  for (const double value : values) {
    const double part = furthest > 0 ? (value - spread.mean) / furthest : 0;
    squares += part * part;
  }
  spread.deviation = furthest * std::sqrt(squares / (n - 1));
  spread.half_width = student_t_quantile(0.5 + kConfidence / 2, n - 1) * spread.deviation / std::sqrt(n);
  return spread;
}

WelchTest welch_test(const std::vector<double>& a, const std::vector<double>& b) {
  const Spread left = spread_of(a), right = spread_of(b);
  const double ea = left.deviation / std::sqrt(left.n), eb = right.deviation / std::sqrt(right.n);
  const double error = std::hypot(ea, eb);
  WelchTest test;
  test.difference = test.low = test.high = right.mean - left.mean;
  if (error == 0) {
    if (test.difference != 0) test.low = test.high = test.p = std::numeric_limits<double>::quiet_NaN();
    return test;
  }
  if (!std::isfinite(error) || !std::isfinite(test.difference)) {  // beyond a double: nothing can be said
    test.low = -std::numeric_limits<double>::infinity();
    test.high = std::numeric_limits<double>::infinity();
    return test;
  }
  const double share_a = (ea / error) * (ea / error), share_b = (eb / error) * (eb / error);  // of the variance
  test.degrees = 1 / (share_a * share_a / (left.n - 1) + share_b * share_b / (right.n - 1));
  test.p = two_sided(test.difference / error, test.degrees);
  const double half = student_t_quantile(0.5 + kConfidence / 2, test.degrees) * error;
  test.low -= half;
  test.high += half;
  return test;
}

RankTest mann_whitney_test(const std::vector<double>& a, const std::vector<double>& b) {
  RankTest test;
  for (const double one : a) {
    for (const double other : b) test.u += other > one ? 1 : other == one ? 0.5 : 0;
  }
  std::vector<double> both = a;
  both.insert(both.end(), b.begin(), b.end());
  const double ties = ties_of(both);
  const double n = static_cast<double>(a.size()), m = static_cast<double>(b.size()), all = n + m;
  const double middle = n * m / 2, away = std::fabs(test.u - middle);
  test.exact = a.size() <= kExactMax && b.size() <= kExactMax;
  if (test.exact) {
    const std::vector<double> shares = rank_sum_shares(double_ranks(both), b.size());
    double beyond = 0;
    for (std::size_t sum = 0; sum < shares.size(); ++sum) {
      const double u = static_cast<double>(sum) / 2 - m * (m + 1) / 2;
      if (std::fabs(u - middle) >= away - 1e-9) beyond += shares[sum];
    }
    test.p = std::min(beyond, 1.0);
    return test;
  }
  const double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
  test.p = variance > 0 ? std::min(normal_two_sided(std::max(away - 0.5, 0.0) / std::sqrt(variance)), 1.0) : 1;
  return test;
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, std::min(1.0, p[order[rank]] * static_cast<double>(p.size() - rank)));
    corrected[order[rank]] = largest;
  }
  return corrected;
}

}  // namespace runner::review
