#include "components/sampler/math/cma_es_state.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <utility>

#include "components/sampler/math/space.h"
#include "runner/core/error.h"

namespace components::sampler {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kDrawsForEachDimension = 10;  // before one outside of the cube is brought to its surface
constexpr double kTiny = 1e-8;
constexpr double kPoint = 1e-9, kFlat = 1e14;  // of a side; of the longest to the shortest variance

/// A point that an older distribution drew counts no further out than any of this one's own would lie.
double farthest(Index dimensions) { return std::sqrt(static_cast<double>(dimensions)) + 4; }

}  // namespace

CmaEsState::CmaEsState(VectorXd mean_N, double sigma, VectorXd least_N, Index population)
    : mean_N_(std::move(mean_N)), least_N_(std::move(least_N)), sigma_(sigma) {
  const Index size = mean_N_.size();
  const auto n = static_cast<double>(size);
  population_ = population > 0 ? population : 4 + static_cast<Index>(std::floor(3 * std::log(n)));  // 48
  parents_ = population_ / 2;
  weights_L_.resize(population_);
  for (Index i = 0; i < population_; ++i) {  // 49
    weights_L_[i] = std::log((static_cast<double>(population_) + 1) / 2) - std::log(static_cast<double>(i) + 1);
  }
  const auto better = weights_L_.head(parents_), worse = weights_L_.tail(population_ - parents_);
  mu_eff_ = better.sum() * better.sum() / better.squaredNorm();
  const double mu_eff_minus = worse.sum() * worse.sum() / worse.squaredNorm();
  c_1_ = 2 / ((n + 1.3) * (n + 1.3) + mu_eff_);                                                         // 57
  c_mu_ = std::min(1 - c_1_ - kTiny, 2 * (mu_eff_ - 2 + 1 / mu_eff_) / ((n + 2) * (n + 2) + mu_eff_));  // 58
  const double least = std::min({1 + c_1_ / c_mu_, 1 + 2 * mu_eff_minus / (mu_eff_ + 2),                // 50, 51
                                 (1 - c_1_ - c_mu_) / (n * c_mu_)});                                    // 52
  const double positive = weights_L_.cwiseMax(0).sum(), negative = -weights_L_.cwiseMin(0).sum();
  for (double& weight : weights_L_) weight *= weight >= 0 ? 1 / positive : least / negative;  // 53
  c_sigma_ = (mu_eff_ + 2) / (n + mu_eff_ + 5);                                               // 55
  d_sigma_ = 1 + 2 * std::max(0.0, std::sqrt((mu_eff_ - 1) / (n + 1)) - 1) + c_sigma_;
  c_c_ = (4 + mu_eff_ / n) / (n + 4 + 2 * mu_eff_ / n);  // 56
  chi_ = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
  covariance_NN_ = MatrixXd::Identity(size, size);
  path_N_ = VectorXd::Zero(size);
  sigma_path_N_ = VectorXd::Zero(size);
  decompose();
}

void CmaEsState::decompose() {
  for (Index i = 0; i < mean_N_.size(); ++i) {
    const double least = least_N_[i] / sigma_;
    covariance_NN_(i, i) = std::max(covariance_NN_(i, i), least * least);
  }
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance_NN_);
  axes_NN_ = solver.eigenvectors();
  spread_N_ = solver.eigenvalues().cwiseMax(kTiny * kTiny).cwiseSqrt();
}

VectorXd CmaEsState::draw(CounterRng& rng) const {
  VectorXd x_N(mean_N_.size());
  for (Index attempt = 0; attempt < kDrawsForEachDimension * mean_N_.size(); ++attempt) {
    VectorXd z_N(mean_N_.size());
    for (double& z : z_N) z = inverse_normal(std::max(rng.uniform(), 0x1p-53));
    x_N = mean_N_ + sigma_ * (axes_NN_ * spread_N_.cwiseProduct(z_N));
    if (x_N.minCoeff() >= 0 && x_N.maxCoeff() <= 1) return x_N;
  }
  return x_N.cwiseMax(0).cwiseMin(1);
}

void CmaEsState::learn(const std::vector<VectorXd>& ranked_LN) {
  RUNNER_ASSERT(static_cast<Index>(ranked_LN.size()) == population_, "a generation is whole");
  const Index size = mean_N_.size();
  const auto n = static_cast<double>(size);
  ++generation_;
  const MatrixXd whitening_NN = axes_NN_ * spread_N_.cwiseInverse().asDiagonal() * axes_NN_.transpose();
  MatrixXd steps_NL(size, population_);
  VectorXd lengths_L(population_);
  for (Index i = 0; i < population_; ++i) {
    VectorXd step_N = (ranked_LN[static_cast<std::size_t>(i)] - mean_N_) / sigma_;
    const double length = (whitening_NN * step_N).norm();
    if (length > farthest(size)) step_N *= farthest(size) / length;
    lengths_L[i] = std::min(length, farthest(size));
    steps_NL.col(i) = step_N;
  }
  const VectorXd step_N = steps_NL.leftCols(parents_) * weights_L_.head(parents_);  // 41
  mean_N_ += sigma_ * step_N;
  sigma_path_N_ =
      (1 - c_sigma_) * sigma_path_N_ + std::sqrt(c_sigma_ * (2 - c_sigma_) * mu_eff_) * (whitening_NN * step_N);  // 43
  const double norm = sigma_path_N_.norm();
  sigma_ *= std::exp(c_sigma_ / d_sigma_ * (norm / chi_ - 1));  // 44
  const bool stalls = norm / std::sqrt(1 - std::pow(1 - c_sigma_, 2 * (generation_ + 1))) >= (1.4 + 2 / (n + 1)) * chi_;
  path_N_ *= 1 - c_c_;  // 45
  if (!stalls) path_N_ += std::sqrt(c_c_ * (2 - c_c_) * mu_eff_) * step_N;
  VectorXd weights_L = weights_L_;
  for (Index i = 0; i < population_; ++i) {  // 46
    if (weights_L[i] < 0) weights_L[i] *= n / (lengths_L[i] * lengths_L[i] + kTiny);
  }
  const double kept = 1 + (stalls ? c_1_ * c_c_ * (2 - c_c_) : 0) - c_1_ - c_mu_ * weights_L_.sum();
  covariance_NN_ = kept * covariance_NN_ + c_1_ * path_N_ * path_N_.transpose() +
                   c_mu_ * steps_NL * weights_L.asDiagonal() * steps_NL.transpose();  // 47
  decompose();
}

bool CmaEsState::has_converged() const {
  const double most = spread_N_.maxCoeff(), least = spread_N_.minCoeff();
  return sigma_ * most < kPoint || most * most > kFlat * least * least;
}

}  // namespace components::sampler
