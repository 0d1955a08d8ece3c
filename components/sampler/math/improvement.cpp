#include "components/sampler/math/improvement.h"

#include <cmath>
#include <numbers>

namespace components::sampler {
namespace {

constexpr double kFar = -25;  // below it the sum cancels out, and a series is exact

}  // namespace

LogImprovement log_improvement(double mean, double deviation, double least) {
  const double z = (least - mean) / deviation;
  const double log_density = -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi);
  // h = density + z share, what a standard normal variable exceeds -z by; d log h / dz = share / h.
  double log_h = 0, share_by_h = 0, density_by_h = 0;
  if (z > kFar) {
    const double density = std::exp(log_density), share = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    const double h = density + z * share;
    log_h = std::log(h);
    share_by_h = share / h;
    density_by_h = density / h;
  } else {
    const double s =
        1 / (z * z);  // h = density s (1 - 3 s + 15 s^2 - ...), share = density / |z| (1 - s + 3 s^2 - ...)
    const double series = 1 - 3 * s + 15 * s * s;
    log_h = log_density + std::log(s * series);
    density_by_h = 1 / (s * series);
    share_by_h = std::sqrt(s) * (1 - s + 3 * s * s) * density_by_h;
  }
  return {log_h + std::log(deviation), -share_by_h / deviation, density_by_h / deviation};
}

}  // namespace components::sampler
