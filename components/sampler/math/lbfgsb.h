#pragma once

#include <Eigen/Core>
#include <functional>

namespace components::sampler {

/// A function of N numbers; writes its gradient.
using DifferentiableFunction = std::function<double(const Eigen::VectorXd& x_N, Eigen::VectorXd& gradient_N)>;

struct LbfgsbResult {
  Eigen::VectorXd x_N;
  double value = 0;
};

/// Where to stop.
struct LbfgsbOptions {
  int steps = 100;
  double gradient = 1e-5;  ///< the largest of its components that is left, of those that do not lead out of the box
};

/// Minimizes locally from `x_N` within [low_N, high_N]. For few dimensions: it keeps an N x N matrix.
///
/// Source  Bertsekas, Projected Newton Methods for Optimization Problems with Simple Constraints, 1982, with BFGS's
///         matrix in place of the inverse of the Hessian
LbfgsbResult minimize_in_box(const DifferentiableFunction& f, Eigen::VectorXd x_N, const Eigen::VectorXd& low_N,
                             const Eigen::VectorXd& high_N, const LbfgsbOptions& limits);

}  // namespace components::sampler
