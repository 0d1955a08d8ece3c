#pragma once

#include <Eigen/Core>
#include <vector>

#include "components/sampler/math/counter_rng.h"

namespace components::sampler {

// N: dimensions   L: points of a generation

/// A normal distribution that adapts to the better half of its samples (CMA-ES), in the unit cube.
///
/// Source  Hansen, The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772; constants by its equation numbers
class CmaEsState {
 public:
  /// mean_N    where it begins
  /// sigma     and how wide, in each dimension
  /// least_N   deviations that it keeps: half the way to the next value, where there are steps; else 0
  /// population  points of a generation; 0: what the tutorial advises
  CmaEsState(Eigen::VectorXd mean_N, double sigma, Eigen::VectorXd least_N, Eigen::Index population = 0);

  Eigen::Index population() const { return population_; }
  /// A draw inside the cube.
  Eigen::VectorXd draw(CounterRng& rng) const;
  /// The points of a generation, the best first; `population()` of them. They may come from a distribution before this
  /// one.
  void learn(const std::vector<Eigen::VectorXd>& ranked_LN);
  const Eigen::VectorXd& mean_N() const { return mean_N_; }
  Eigen::MatrixXd covariance_NN() const { return sigma_ * sigma_ * covariance_NN_; }
  /// Whether it has converged to a point.
  bool has_converged() const;

 private:
  void decompose();

  Eigen::Index population_ = 0, parents_ = 0;
  Eigen::VectorXd mean_N_, least_N_;
  double sigma_ = 0;
  Eigen::VectorXd weights_L_;
  double mu_eff_ = 0, c_1_ = 0, c_mu_ = 0, c_c_ = 0, c_sigma_ = 0, d_sigma_ = 0, chi_ = 0;
  Eigen::MatrixXd covariance_NN_, axes_NN_;
  Eigen::VectorXd spread_N_;  ///< deviations along the axes
  Eigen::VectorXd path_N_, sigma_path_N_;
  int generation_ = 0;
};

}  // namespace components::sampler
