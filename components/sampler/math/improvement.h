#pragma once

namespace components::sampler {

/// Logarithm of how much a normal distribution is expected to fall below a value, and its slopes.
struct LogImprovement {
  double value = 0;
  double by_mean = 0, by_deviation = 0;
};

/// Source  Ament et al., Unexpected Improvements to Expected Improvement for Bayesian Optimization, NeurIPS 2023, eq. 9
LogImprovement log_improvement(double mean, double deviation, double least);

}  // namespace components::sampler
