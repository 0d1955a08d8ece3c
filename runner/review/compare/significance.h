#pragma once

#include <vector>

// Significance tests for a few replicates of an experiment. Values are finite.

namespace runner::review {

inline constexpr double kConfidence = 0.95;

/// P(T <= t) of Student's t with `degrees` of freedom, which need not be an integer.
double student_t_below(double t, double degrees);
/// The t with student_t_below(t, degrees) = p, for p above 0.5.
double student_t_quantile(double p, double degrees);

struct Spread {
  int n = 0;
  double mean = 0;
  double deviation = 0;   ///< of a sample: n - 1 in the denominator; NaN for one value
  double half_width = 0;  ///< of the 95 % interval of the mean by Student's t; NaN for one value
};
Spread spread_of(const std::vector<double>& values);

struct WelchTest {
  double difference = 0;     ///< mean of b minus mean of a
  double low = 0, high = 0;  ///< 95 % interval of it
  double degrees = 0;
  double p = 1;  ///< two-sided
};
/// Welch's t-test of two means, with unequal variances. At least two values each. If neither has any spread, there is
/// nothing to measure a difference by: the interval and p are NaN, or 0 and 1 if there is no difference.
WelchTest welch_test(const std::vector<double>& a, const std::vector<double>& b);

struct RankTest {
  double u = 0;  ///< pairs in which b is above a; a tie counts half
  double p = 1;  ///< two-sided
  bool exact = false;
};
/// The Mann-Whitney U test of ranks. Exact up to 20 values each, over all permutations of the values; otherwise by the
/// normal approximation, with corrections for ties and continuity.
RankTest mann_whitney_test(const std::vector<double>& a, const std::vector<double>& b);

/// Holm's correction of the p-values of several tests.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace runner::review
