#include "components/sampler/math/regret_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "components/sampler/math/gaussian_process.h"
#include "components/sampler/math/sobol_sequence.h"
#include "components/sampler/math/unit_cube.h"

// D: dimensions   N: the best variants   M: points that are asked about

namespace components::sampler {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kDelta = 0.1;         // how likely the truth may lie beyond the bounds
constexpr double kScale = 5;           // that Srinivas et al. 2010 divide the width's square by in their experiments
constexpr std::size_t kBestMax = 300;  // in the model: its cost grows with their cube
constexpr Index kAsked = 2048;
constexpr double kDeviationLeast = 1e-10;

/// Those with the smallest values; one that equals the last of them is one of them.
std::vector<const Observation*> best_of(const std::vector<Observation>& complete, const RegretOptions& options) {
  const std::size_t share = static_cast<std::size_t>(static_cast<double>(complete.size()) * options.share);
  const std::size_t count = std::min({std::max(share, options.least), complete.size(), kBestMax});
  std::vector<double> values;
  for (const Observation& one : complete) values.push_back(one.values.front());
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count - 1), values.end());
  std::vector<const Observation*> best;
  for (const Observation& one : complete) {
    if (one.values.front() <= values[count - 1] && best.size() < kBestMax) best.push_back(&one);
  }
  return best;
}

/// Points of the whole space that the constraints allow; fewer where they allow few.
MatrixXd asked_points(const UnitCube& cube) {
  const SobolSequence sequence(cube.size(), 0);
  MatrixXd points_MD(kAsked, static_cast<Index>(cube.size()));
  Index count = 0;
  for (std::uint64_t index = 0; index < static_cast<std::uint64_t>(kDrawsMax) && count < kAsked; ++index) {
    const VectorXd x_D = cube.at_quantiles([&](std::size_t i) { return sequence.at(index, i); });
    if (cube.allows(x_D)) points_MD.row(count++) = cube.effective(x_D).transpose();
  }
  return points_MD.topRows(count);
}

/// Deviations that the bounds lie from the mean.
double width(std::size_t dimensions, std::size_t points) {
  const double n = static_cast<double>(points);
  const double all = static_cast<double>(dimensions) * n * n * std::numbers::pi * std::numbers::pi / 6;
  return std::sqrt(2 * std::log(all / kDelta) / kScale);
}

}  // namespace

double regret_bound(const Space& space, const std::vector<Observation>& complete, const RegretOptions& options) {
  const UnitCube cube(space);
  const std::vector<const Observation*> best = best_of(complete, options);
  const MatrixXd points_ND = cube.seen(best);
  VectorXd values_N(static_cast<Index>(best.size()));
  for (std::size_t n = 0; n < best.size(); ++n) values_N[static_cast<Index>(n)] = best[n]->values.front();
  const double mean = values_N.mean();
  const double deviation = std::max(std::sqrt((values_N.array() - mean).square().mean()), kDeviationLeast);
  values_N = (values_N.array() - mean) / deviation;
  const GaussianProcess model(points_ND, std::move(values_N), cube.choices());
  const double reach = width(cube.size(), best.size());
  // The best of those tried is no worse than the least upper bound, that of the space no better than the least lower
  // one.
  double upper = std::numeric_limits<double>::infinity(), lower = upper;
  for (const auto& guess : model.at(points_ND)) {
    upper = std::min(upper, guess.mean + reach * guess.deviation);
    lower = std::min(lower, guess.mean - reach * guess.deviation);
  }
  for (const auto& guess : model.at(asked_points(cube))) lower = std::min(lower, guess.mean - reach * guess.deviation);
  return (upper - lower) * deviation;
}

double median_of_first_bounds(const Space& space, const std::vector<Observation>& complete, const FirstBounds& first,
                              const RegretOptions& options) {
  std::vector<Observation> some;
  std::vector<double> bounds;
  for (std::size_t i = 0; i < first.count; ++i) {
    some.push_back(complete.at(first.left_out + i));
    bounds.push_back(regret_bound(space, some, options));
  }
  const auto middle = bounds.begin() + static_cast<std::ptrdiff_t>(bounds.size() / 2);
  std::nth_element(bounds.begin(), middle, bounds.end());
  return *middle;
}

}  // namespace components::sampler
