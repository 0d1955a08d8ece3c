#include "components/sampler/math/gaussian_process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "components/sampler/math/lbfgsb.h"

namespace components::sampler {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kNoiseLeast = 1e-6;
constexpr double kLogLeast = -14, kLogMost = 7;  // a millionth to a thousand: lengths from 33rds of a side on
constexpr double kLogNoiseLeast = -23;           // beside kNoiseLeast it is nothing
constexpr LbfgsbOptions kLimits = {100, 1e-2};
constexpr double kDeviationLeast = 1e-6;

/// Matern's kernel of nu = 5/2 at a squared distance, in lengths.
double matern(double squared) {
  const double r = std::sqrt(5 * squared);
  return (1 + r + r * r / 3) * std::exp(-r);
}

/// And its slope.
double matern_slope(double squared) {
  const double r = std::sqrt(5 * squared);
  return -5.0 / 6 * (1 + r) * std::exp(-r);
}

}  // namespace

GaussianProcess::GaussianProcess(MatrixXd points_ND, VectorXd values_N, std::vector<bool> is_choice)
    : points_ND_(std::move(points_ND)), values_N_(std::move(values_N)), is_choice_(std::move(is_choice)) {
  find_parameters();
  settle();
}

MatrixXd GaussianProcess::distances_PD() const {
  const Index count = points_ND_.rows();
  MatrixXd distances_PD(count * (count - 1) / 2, points_ND_.cols());
  for (Index d = 0; d < points_ND_.cols(); ++d) {
    Index pair = 0;
    for (Index i = 1; i < count; ++i) {
      for (Index k = 0; k < i; ++k, ++pair) {
        const double apart = points_ND_(i, d) - points_ND_(k, d);
        distances_PD(pair, d) = is_choice_[static_cast<std::size_t>(d)] ? (apart == 0 ? 0 : 1) : apart * apart;
      }
    }
  }
  return distances_PD;
}

void GaussianProcess::find_parameters() {
  distances_PD_ = distances_PD();
  const Index size = points_ND_.cols() + 2;
  VectorXd least = VectorXd::Constant(size, kLogLeast);
  least[size - 1] = kLogNoiseLeast;
  const auto found =
      minimize_in_box([this](const VectorXd& logs, VectorXd& gradient) { return likelihood(logs, gradient); },
                      VectorXd::Zero(size), least, VectorXd::Constant(size, kLogMost), kLimits);
  distances_PD_.resize(0, 0);
  weights_D_ = found.x_N.head(size - 2).array().exp();
  scale_ = std::exp(found.x_N[size - 2]);
  noise_ = std::exp(found.x_N[size - 1]) + kNoiseLeast;
}

/// Minus the logarithm of how likely the values and the parameters are. `logs` are those of the weights, the scale and
/// the noise.
double GaussianProcess::likelihood(const VectorXd& logs, VectorXd& gradient) const {
  const Index count = points_ND_.rows(), dimensions = points_ND_.cols();
  const VectorXd weights_D = logs.head(dimensions).array().exp();
  const double scale = std::exp(logs[dimensions]), noise = std::exp(logs[dimensions + 1]);
  const VectorXd squared_P = distances_PD_ * weights_D;
  VectorXd slopes_P(squared_P.size());
  MatrixXd covariance_NN(count, count);
  for (Index i = 0, pair = 0; i < count; ++i) {
    covariance_NN(i, i) = scale + noise + kNoiseLeast;
    for (Index k = 0; k < i; ++k, ++pair) {
      const double r = std::sqrt(5 * squared_P[pair]), fading = std::exp(-r);
      covariance_NN(i, k) = scale * (1 + r + r * r / 3) * fading;
      slopes_P[pair] = -5.0 / 6 * scale * (1 + r) * fading;
    }
  }
  const Eigen::LLT<MatrixXd, Eigen::Lower> llt(covariance_NN);
  if (llt.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
  const auto factor_NN = llt.matrixL();
  MatrixXd inverse_factor_NN = MatrixXd::Identity(count, count);
  factor_NN.solveInPlace(inverse_factor_NN);
  MatrixXd inverse_NN = MatrixXd::Zero(count, count);
  inverse_NN.selfadjointView<Eigen::Lower>().rankUpdate(inverse_factor_NN.transpose());
  const VectorXd alpha_N = inverse_NN.selfadjointView<Eigen::Lower>() * values_N_;
  double log_determinant = 0;
  for (Index i = 0; i < count; ++i) log_determinant += 2 * std::log(llt.matrixLLT()(i, i));
  // d/dC of the whole is (C^-1 - alpha alpha^T) / 2; a pair stands in it twice.
  VectorXd by_pair_P(squared_P.size());
  double by_scale = 0, by_noise = 0;
  for (Index i = 0, pair = 0; i < count; ++i) {
    const double own = 0.5 * (inverse_NN(i, i) - alpha_N[i] * alpha_N[i]);
    by_noise += own;
    by_scale += own * scale;
    for (Index k = 0; k < i; ++k, ++pair) {
      const double of_pair = inverse_NN(i, k) - alpha_N[i] * alpha_N[k];
      by_pair_P[pair] = of_pair * slopes_P[pair];
      by_scale += of_pair * covariance_NN(i, k);
    }
  }
  gradient.head(dimensions) = (distances_PD_.transpose() * by_pair_P).cwiseProduct(weights_D);
  gradient[dimensions] = by_scale;
  gradient[dimensions + 1] = by_noise * noise;
  // The priors: lengths near a side, a scale like Gamma(2, 1), a noise like Gamma(1.1, 30).
  const double all_noise = noise + kNoiseLeast;
  double prior = -std::log(scale) + scale - 0.1 * std::log(all_noise) + 30 * all_noise;
  gradient[dimensions] += scale - 1;
  gradient[dimensions + 1] += (30 - 0.1 / all_noise) * noise;
  for (Index d = 0; d < dimensions; ++d) {
    prior += 0.1 / weights_D[d] + 0.1 * weights_D[d];
    gradient[d] += 0.1 * weights_D[d] - 0.1 / weights_D[d];
  }
  return 0.5 * log_determinant + 0.5 * values_N_.dot(alpha_N) + prior;
}

double GaussianProcess::squared_distance(const VectorXd& a_D, Index point) const {
  double sum = 0;
  for (Index d = 0; d < a_D.size(); ++d) {
    const double apart = a_D[d] - points_ND_(point, d);
    sum += weights_D_[d] * (is_choice_[static_cast<std::size_t>(d)] ? (apart == 0 ? 0 : 1) : apart * apart);
  }
  return sum;
}

/// Works out what guesses need.
void GaussianProcess::settle() {
  const Index count = points_ND_.rows();
  MatrixXd covariance_NN(count, count);
  for (Index i = 0; i < count; ++i) {
    const VectorXd point_D = points_ND_.row(i);
    for (Index k = 0; k <= i; ++k) covariance_NN(i, k) = scale_ * matern(squared_distance(point_D, k));
  }
  covariance_NN.diagonal().array() += noise_;
  const Eigen::LLT<MatrixXd, Eigen::Lower> llt(covariance_NN);
  factor_NN_ = llt.matrixL();
  alpha_N_ = llt.solve(values_N_);
}

void GaussianProcess::fantasize(const MatrixXd& points_MD, const VectorXd& least_M) {
  const Index known = points_ND_.rows(), count = points_MD.rows();
  if (count == 0) return;
  const std::vector<Prediction> guesses = at(points_MD);
  points_ND_.conservativeResize(known + count, Eigen::NoChange);
  points_ND_.bottomRows(count) = points_MD;
  values_N_.conservativeResize(known + count);
  for (Index m = 0; m < count; ++m) {
    values_N_[known + m] = std::max(guesses[static_cast<std::size_t>(m)].mean, least_M[m]);
  }
  settle();
}

std::vector<GaussianProcess::Prediction> GaussianProcess::at(const MatrixXd& points_MD) const {
  MatrixXd covariance_NM(points_ND_.rows(), points_MD.rows());
  for (Index m = 0; m < points_MD.rows(); ++m) {
    const VectorXd point_D = points_MD.row(m);
    for (Index i = 0; i < points_ND_.rows(); ++i) covariance_NM(i, m) = scale_ * matern(squared_distance(point_D, i));
  }
  const VectorXd means_M = covariance_NM.transpose() * alpha_N_;
  factor_NN_.triangularView<Eigen::Lower>().solveInPlace(covariance_NM);
  std::vector<Prediction> guesses;
  for (Index m = 0; m < points_MD.rows(); ++m) {
    const double variance = scale_ - covariance_NM.col(m).squaredNorm();
    guesses.push_back({means_M[m], std::sqrt(std::max(variance, kDeviationLeast * kDeviationLeast))});
  }
  return guesses;
}

GaussianProcess::Prediction GaussianProcess::at(const VectorXd& point_D, VectorXd& mean_gradient_D,
                                                VectorXd& deviation_gradient_D) const {
  const Index count = points_ND_.rows(), dimensions = points_ND_.cols();
  VectorXd covariance_N(count);
  MatrixXd slopes_DN = MatrixXd::Zero(dimensions, count);
  for (Index i = 0; i < count; ++i) {
    const double squared = squared_distance(point_D, i);
    covariance_N[i] = scale_ * matern(squared);
    const double slope = 2 * scale_ * matern_slope(squared);
    for (Index d = 0; d < dimensions; ++d) {
      if (!is_choice_[static_cast<std::size_t>(d)]) {
        slopes_DN(d, i) = slope * weights_D_[d] * (point_D[d] - points_ND_(i, d));
      }
    }
  }
  VectorXd solved_N = covariance_N;
  factor_NN_.triangularView<Eigen::Lower>().solveInPlace(solved_N);
  const double variance = scale_ - solved_N.squaredNorm();
  const Prediction guess{covariance_N.dot(alpha_N_), std::sqrt(std::max(variance, kDeviationLeast * kDeviationLeast))};
  factor_NN_.triangularView<Eigen::Lower>().transpose().solveInPlace(solved_N);
  mean_gradient_D = slopes_DN * alpha_N_;
  deviation_gradient_D = -(slopes_DN * solved_N) / guess.deviation;
  return guess;
}

}  // namespace components::sampler
