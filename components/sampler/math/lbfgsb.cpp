#include "components/sampler/math/lbfgsb.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace components::sampler {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kHalvingsMax = 20;
constexpr double kEnough = 1e-4;    // of the fall that the gradient promises (Armijo)
constexpr double kLevel = 1e-9;     // of the value: what falls less has come to its bottom
constexpr double kFirstStep = 0.5;  // longest component of the first step, before anything is known of the curvature

/// Which components may move: not those at a side that the gradient leads out of.
std::vector<bool> free_components(const VectorXd& x, const VectorXd& gradient, const VectorXd& low,
                                  const VectorXd& high) {
  std::vector<bool> free;
  for (Index i = 0; i < x.size(); ++i) free.push_back(gradient[i] > 0 ? x[i] > low[i] : x[i] < high[i]);
  return free;
}

VectorXd of_free(VectorXd x, const std::vector<bool>& free) {
  for (Index i = 0; i < x.size(); ++i) {
    if (!free[static_cast<std::size_t>(i)]) x[i] = 0;
  }
  return x;
}

}  // namespace

LbfgsbResult minimize_in_box(const DifferentiableFunction& f, VectorXd x, const VectorXd& low, const VectorXd& high,
                             const LbfgsbOptions& limits) {
  const Index size = x.size();
  VectorXd gradient(size), next_gradient(size);
  double value = f(x, gradient);
  MatrixXd inverse = MatrixXd::Identity(size, size);
  bool knows_curvature = false;
  for (int step = 0; step < limits.steps && std::isfinite(value); ++step) {
    const std::vector<bool> free = free_components(x, gradient, low, high);
    const VectorXd slope = of_free(gradient, free);
    if (size == 0 || slope.cwiseAbs().maxCoeff() < limits.gradient) break;
    VectorXd way = of_free(-(inverse * slope), free);
    if (!knows_curvature) way *= std::min(1.0, kFirstStep / way.cwiseAbs().maxCoeff());
    VectorXd next;
    double next_value = 0;
    bool falls = false;
    for (int halving = 0; halving < kHalvingsMax && !falls; ++halving, way *= 0.5) {
      next = (x + way).cwiseMax(low).cwiseMin(high);
      next_value = f(next, next_gradient);
      falls = std::isfinite(next_value) && next_value <= value + kEnough * slope.dot(next - x);
    }
    if (!falls) {
      if (!knows_curvature) break;
      inverse.setIdentity();  // what was learnt elsewhere misleads here
      knows_curvature = false;
      continue;
    }
    const VectorXd moved = next - x, turned = next_gradient - gradient;
    const double curvature = moved.dot(turned);
    if (curvature > 1e-12 * turned.squaredNorm()) {
      if (!knows_curvature) inverse = MatrixXd::Identity(size, size) * (curvature / turned.squaredNorm());
      const VectorXd along = inverse * turned;
      inverse += (1 + turned.dot(along) / curvature) / curvature * moved * moved.transpose() -
                 (along * moved.transpose() + moved * along.transpose()) / curvature;
      knows_curvature = true;
    }
    const double fall = value - next_value;
    x = std::move(next);
    gradient = next_gradient;
    value = next_value;
    if (fall <= kLevel * std::max(1.0, std::abs(value))) break;
  }
  return {std::move(x), value};
}

}  // namespace components::sampler
