#include "components/sampler/math/cma_es_state.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using components::sampler::CmaEsState;
using components::sampler::CounterRng;
using Eigen::VectorXd;

TEST_CASE("a distribution learns from generations as the package cmaes does", "[sampler][cma_es]") {
  CmaEsState evolution(VectorXd::Constant(3, 0.5), 1.0 / 6, VectorXd::Zero(3));
  REQUIRE(evolution.population() == 7);
  for (int g = 0; g < 3; ++g) {
    std::vector<VectorXd> points;
    for (int k = 0; k < 7; ++k) {
      points.push_back(Eigen::Vector3d(0.5 + 0.3 * std::sin(1 + k + 7 * g), 0.4 + 0.2 * std::cos(2 * k + g),
                                       0.6 + 0.25 * std::sin(3 * k - g)));
    }
    const auto value = [](const VectorXd& x) { return x[0] + 10 * std::pow(x[1] - 0.3, 2) + x[2]; };
    std::sort(points.begin(), points.end(), [&](const VectorXd& a, const VectorXd& b) { return value(a) < value(b); });
    evolution.learn(points);
  }
  // cmaes 0.13.1: CMA(mean=[0.5] * 3, sigma=1 / 6), the same three generations; its mean, and sigma^2 C.
  const Eigen::Vector3d mean(0.556077368760437, 0.27381234523299, 0.473744755806001);
  Eigen::Matrix3d covariance;
  covariance << 0.0227338877858557, -0.000370267140734957, 0.00175424138374096,  //
      -0.000370267140734957, 0.0267655023400898, -0.00134060686012028,           //
      0.00175424138374096, -0.00134060686012028, 0.0229821272223699;
  CHECK((evolution.mean_N() - mean).norm() < 1e-7);  // the package adds 1e-8 where this does, in other units
  CHECK((evolution.covariance_NN() - covariance).norm() < 1e-7);
}

TEST_CASE("a distribution keeps to its cube, and finds the bottom of a narrow valley", "[sampler][cma_es]") {
  CmaEsState evolution(VectorXd::Constant(4, 0.5), 1.0 / 6, VectorXd::Zero(4));
  const auto value = [](const VectorXd& x) {
    return std::pow(x[0] - 0.9, 2) + 1e4 * std::pow(x[0] + x[1] - 1.2, 2) + std::pow(x[2] - x[3], 2) + x[3] * x[3];
  };
  std::int64_t number = 0;
  double best = 1e9;
  while (!evolution.has_converged()) {
    REQUIRE(number < 20'000);
    std::vector<VectorXd> points;
    while (static_cast<Eigen::Index>(points.size()) < evolution.population()) {
      CounterRng rng(3, number++);
      points.push_back(evolution.draw(rng));
      REQUIRE(points.back().minCoeff() >= 0);
      REQUIRE(points.back().maxCoeff() <= 1);
      best = std::min(best, value(points.back()));
    }
    std::sort(points.begin(), points.end(), [&](const VectorXd& a, const VectorXd& b) { return value(a) < value(b); });
    evolution.learn(points);
  }
  CHECK(best < 1e-9);
}

TEST_CASE("a distribution over steps does not shrink below them", "[sampler][cma_es]") {
  CmaEsState evolution(VectorXd::Constant(2, 0.5), 1.0 / 6, Eigen::Vector2d(0.05, 0));
  const std::vector<VectorXd> same(static_cast<std::size_t>(evolution.population()), Eigen::Vector2d(0.5, 0.5));
  for (int i = 0; i < 200; ++i) evolution.learn(same);
  CHECK(std::sqrt(evolution.covariance_NN()(0, 0)) >= 0.05 * (1 - 1e-9));
  CHECK(evolution.covariance_NN()(1, 1) < 1e-9);
}
