#include "components/sampler/math/gaussian_process.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "components/sampler/math/improvement.h"
#include "components/sampler/math/lbfgsb.h"

using components::sampler::GaussianProcess;
using Eigen::VectorXd;

namespace {

/// 40 points in three numbers and a choice of three, and a smooth function of them.
GaussianProcess known_process() {
  Eigen::MatrixXd points(40, 4);
  VectorXd values(40);
  for (int i = 0; i < 40; ++i) {
    for (int d = 0; d < 4; ++d) {
      const double wild = std::sin(12.9898 * (i + 1) + 78.233 * (d + 1)) * 43758.5453;
      points(i, d) = wild - std::floor(wild);
    }
    points(i, 3) = std::floor(points(i, 3) * 3);
    values[i] = std::sin(5 * points(i, 0)) + 2 * std::pow(points(i, 1) - 0.3, 2) + 0.1 * points(i, 2) +
                (points(i, 3) == 1 ? 0.5 : 0);
  }
  const double mean = values.mean();
  const double deviation = std::sqrt((values.array() - mean).square().mean());
  values = (values.array() - mean) / deviation;
  return GaussianProcess(points, values, {false, false, false, true});
}

}  // namespace

TEST_CASE("a Gaussian process finds the lengths that Optuna's finds, and guesses alike", "[sampler][gp]") {
  const GaussianProcess process = known_process();
  // optuna 5.0.0: _gp.gp.fit_kernel_params with its default prior and gtol=1e-6; posterior of the same point.
  const VectorXd lengths = process.lengths_D();
  CHECK(std::pow(lengths[0], -2) == Approx(1.9963).epsilon(0.01));
  CHECK(std::pow(lengths[1], -2) == Approx(0.4819).epsilon(0.01));
  CHECK(std::pow(lengths[2], -2) == Approx(0.0248).epsilon(0.02));
  CHECK(std::pow(lengths[3], -2) == Approx(0.0358).epsilon(0.02));
  VectorXd point(4), by_mean, by_deviation;
  point << 0.4, 0.6, 0.2, 1;
  const auto guess = process.at(point, by_mean, by_deviation);
  CHECK(guess.mean == Approx(1.1597453330104557).epsilon(1e-3));
  CHECK(guess.deviation == Approx(0.014210338189526354).epsilon(0.02));
}

TEST_CASE("the slopes of a guess are what a small step sees", "[sampler][gp]") {
  const GaussianProcess process = known_process();
  VectorXd point(4), by_mean, by_deviation, unused_mean, unused_deviation;
  point << 0.4, 0.6, 0.2, 1;
  process.at(point, by_mean, by_deviation);
  for (int d = 0; d < 3; ++d) {
    VectorXd before = point, after = point;
    before[d] -= 1e-5;
    after[d] += 1e-5;
    const auto low = process.at(before, unused_mean, unused_deviation);
    const auto high = process.at(after, unused_mean, unused_deviation);
    CHECK(by_mean[d] == Approx((high.mean - low.mean) / 2e-5).epsilon(1e-4));
    CHECK(by_deviation[d] == Approx((high.deviation - low.deviation) / 2e-5).epsilon(1e-3));
  }
  CHECK(by_mean[3] == 0);
}

TEST_CASE("fantasized points count as observed", "[sampler][gp]") {
  GaussianProcess process = known_process();
  Eigen::RowVectorXd point(4);
  point << 0.95, 0.05, 0.9, 2;
  const auto before = process.at(Eigen::MatrixXd(point)).front();
  process.fantasize(point, VectorXd::Constant(1, -10));
  const auto after = process.at(Eigen::MatrixXd(point)).front();
  CHECK(after.mean == Approx(before.mean).margin(1e-3));
  CHECK(after.deviation < before.deviation);
  process.fantasize(point, VectorXd::Constant(1, before.mean + 5));
  CHECK(process.at(Eigen::MatrixXd(point)).front().mean > before.mean + 1);
}

TEST_CASE("the logarithm of the expected improvement is exact near and far", "[sampler][gp]") {
  struct Case {
    double z, value;
  };
  // optuna 5.0.0: _gp.acqf.standard_logei
  for (const Case& c : {Case{2, 0.697383545788}, Case{0, -0.918938533205}, Case{-5, -16.7443011627},
                        Case{-24, -295.280223235}, Case{-26, -345.439546722}, Case{-100, -5010.1295788}}) {
    const auto found = components::sampler::log_improvement(-2 * c.z, 2, 0);
    CHECK(found.value == Approx(c.value + std::log(2)).epsilon(1e-6));
    const auto more = components::sampler::log_improvement(-2 * c.z + 1e-6, 2, 0);
    CHECK(found.by_mean == Approx((more.value - found.value) / 1e-6).epsilon(1e-3));
    const auto wider = components::sampler::log_improvement(-2 * c.z, 2 + 1e-6, 0);
    CHECK(found.by_deviation == Approx((wider.value - found.value) / 1e-6).epsilon(1e-3));
  }
}

TEST_CASE("a minimum in a box is found inside and at its sides", "[sampler][gp]") {
  const auto valley = [](const VectorXd& x, VectorXd& gradient) {
    gradient[0] = -400 * x[0] * (x[1] - x[0] * x[0]) - 2 * (1 - x[0]);
    gradient[1] = 200 * (x[1] - x[0] * x[0]);
    return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  const VectorXd start = Eigen::Vector2d(-1.2, 1), low = VectorXd::Constant(2, -2);
  const auto inside = components::sampler::minimize_in_box(valley, start, low, VectorXd::Constant(2, 2), {200, 1e-8});
  CHECK(inside.x_N[0] == Approx(1).margin(1e-3));
  CHECK(inside.x_N[1] == Approx(1).margin(1e-3));
  const auto side = components::sampler::minimize_in_box(valley, start, low, Eigen::Vector2d(0.5, 2), {200, 1e-8});
  CHECK(side.x_N[0] == 0.5);
  CHECK(side.x_N[1] == Approx(0.25).margin(1e-3));
}
