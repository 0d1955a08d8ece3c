#pragma once

#include <Eigen/Core>
#include <vector>

namespace components::sampler {

// N: points   D: dimensions   M: points that are asked about   P: pairs of points, N (N - 1) / 2

/// A Gaussian process with a Matern 5/2 kernel and one length scale per dimension. Coordinates are in [0, 1]; those of
/// choices are equal or different.
///
/// Source  Rasmussen & Williams, Gaussian Processes for Machine Learning, ch. 2, 4 and 5; priors of Optuna's GPSampler
class GaussianProcess {
 public:
  /// Finds the lengths, the scale and the noise that are likeliest (MAP). `values_N` have mean 0 and variance 1.
  GaussianProcess(Eigen::MatrixXd points_ND, Eigen::VectorXd values_N, std::vector<bool> is_choice);

  /// Adds points as if they were observed, each with its predicted mean, or least_M where that is larger.
  void fantasize(const Eigen::MatrixXd& points_MD, const Eigen::VectorXd& least_M);

  struct Prediction {
    double mean = 0, deviation = 0;
  };
  /// [M] of points_MD.
  std::vector<Prediction> at(const Eigen::MatrixXd& points_MD) const;
  /// The same of one point, with the gradients of both.
  Prediction at(const Eigen::VectorXd& point_D, Eigen::VectorXd& mean_gradient_D,
                Eigen::VectorXd& deviation_gradient_D) const;

  /// The length scale of each dimension.
  Eigen::VectorXd lengths_D() const { return weights_D_.cwiseSqrt().cwiseInverse(); }

 private:
  void find_parameters();
  double likelihood(const Eigen::VectorXd& logs, Eigen::VectorXd& gradient) const;
  void settle();
  Eigen::MatrixXd distances_PD() const;
  double squared_distance(const Eigen::VectorXd& a_D, Eigen::Index point) const;

  Eigen::MatrixXd points_ND_;
  Eigen::VectorXd values_N_;
  std::vector<bool> is_choice_;
  Eigen::MatrixXd distances_PD_;  ///< squared, by dimension; while parameters are looked for
  Eigen::VectorXd weights_D_;     ///< 1 / length^2
  double scale_ = 1, noise_ = 1;
  Eigen::MatrixXd factor_NN_;  ///< Cholesky's, of the points' covariance
  Eigen::VectorXd alpha_N_;    ///< covariance^-1 values
};

}  // namespace components::sampler
