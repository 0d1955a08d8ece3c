#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "components/sampler/math/gaussian_process.h"
#include "components/sampler/math/grid_points.h"
#include "components/sampler/math/improvement.h"
#include "components/sampler/math/lbfgsb.h"
#include "components/sampler/math/ranking.h"
#include "components/sampler/math/unit_cube.h"
#include "components/sampler/sampler.h"
#include "generated/sampler/gp.h"  // Config; declares make()

// D: dimensions   M: points that are asked about

namespace components::sampler::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kPointsMax = 300;  // in the model: its cost grows with their cube
constexpr int kDrawn = 2000;             // where the search for the most promising point begins
constexpr int kStarts = 10;              // number of them that are refined
constexpr int kRounds = 10;
constexpr std::int64_t kTriedOut = 16;  // dimensions with more steps are searched at doubling distances
constexpr LbfgsbOptions kLimits = {50, 1e-2};

/// Finds the most promising point.
class Search {
 public:
  Search(const UnitCube& cube, const GaussianProcess& model, double least)
      : cube_(cube), model_(model), least_(least), lengths_D_(model.lengths_D()) {}

  std::optional<VectorXd> best(const std::vector<VectorXd>& drawn, const VectorXd& best_tried, CounterRng& rng) const {
    std::optional<VectorXd> most;
    double most_score = -std::numeric_limits<double>::infinity();
    for (const VectorXd& start : starts(drawn, best_tried, rng)) {
      VectorXd x_D = climbed(start);
      if (!cube_.allows(x_D)) x_D = start;
      const double reached = score(x_D);
      if (reached <= most_score || !cube_.allows(x_D)) continue;
      most_score = reached;
      most = x_D;
    }
    return most;
  }

 private:
  double score(const VectorXd& x_D) const { return scores({x_D}).front(); }
  std::vector<double> scores(const std::vector<VectorXd>& points) const {
    MatrixXd points_MD(static_cast<Index>(points.size()), static_cast<Index>(cube_.size()));
    for (std::size_t i = 0; i < points.size(); ++i) {
      points_MD.row(static_cast<Index>(i)) = cube_.effective(points[i]).transpose();
    }
    std::vector<double> scores;
    for (const GaussianProcess::Prediction& guess : model_.at(points_MD)) {
      scores.push_back(log_improvement(guess.mean, guess.deviation, least_).value);
    }
    return scores;
  }

  /// The best of those drawn, some more of them, the likelier the better they are, and the best variant so far.
  std::vector<VectorXd> starts(const std::vector<VectorXd>& drawn, const VectorXd& best_tried, CounterRng& rng) const {
    const std::vector<double> of = scores(drawn);
    const auto most = static_cast<std::size_t>(std::max_element(of.begin(), of.end()) - of.begin());
    std::vector<VectorXd> starts = {drawn[most], best_tried};
    std::vector<double> weights;
    for (const double score : of) weights.push_back(std::exp(score - of[most]));
    weights[most] = 0;
    while (static_cast<int>(starts.size()) < kStarts) {
      double sum = 0;
      for (const double weight : weights) sum += weight;
      if (!(sum > 0)) break;
      double u = rng.uniform() * sum;
      std::size_t chosen = 0;
      while (chosen + 1 < weights.size() && (u >= weights[chosen] || weights[chosen] == 0)) u -= weights[chosen++];
      starts.push_back(drawn[chosen]);
      weights[chosen] = 0;
    }
    return starts;
  }

  VectorXd climbed(VectorXd x_D) const {
    double reached = score(x_D);
    for (int round = 0; round < kRounds; ++round) {
      const double before = reached;
      climb_smooth(x_D, reached);
      for (std::size_t i = 0; i < cube_.size(); ++i) {
        if (!cube_.is_smooth(i)) step(i, x_D, reached);
      }
      if (reached <= before + 1e-4) break;
    }
    return x_D;
  }

  /// Along all numbers without steps at once, in units of their lengths.
  void climb_smooth(VectorXd& x_D, double& reached) const {
    const VectorXd seen_D = cube_.effective(x_D);
    std::vector<Index> moves;
    for (std::size_t i = 0; i < cube_.size(); ++i) {
      const auto d = static_cast<Index>(i);
      if (cube_.is_smooth(i) && seen_D[d] == x_D[d]) moves.push_back(d);  // else it plays no part here
    }
    if (moves.empty()) return;
    const VectorXd unit = lengths_D_(moves);
    const auto f = [&](const VectorXd& z, VectorXd& gradient) {
      VectorXd at_D = seen_D, by_mean_D, by_deviation_D;
      at_D(moves) = z.cwiseProduct(unit);
      const auto guess = model_.at(at_D, by_mean_D, by_deviation_D);
      const LogImprovement found = log_improvement(guess.mean, guess.deviation, least_);
      const VectorXd slope_D = -(found.by_mean * by_mean_D + found.by_deviation * by_deviation_D);
      gradient = VectorXd(slope_D(moves)).cwiseProduct(unit);
      return -found.value;
    };
    const VectorXd high = unit.cwiseInverse();
    const LbfgsbResult found = minimize_in_box(f, VectorXd(x_D(moves)).cwiseQuotient(unit).cwiseMin(high).cwiseMax(0),
                                               VectorXd::Zero(unit.size()), high, kLimits);
    VectorXd next_D = x_D;
    next_D(moves) = found.x_N.cwiseProduct(unit).cwiseMin(1);
    take_if_better({next_D}, x_D, reached);
  }

  /// To another value of one dimension, as long as that is better.
  void step(std::size_t i, VectorXd& x_D, double& reached) const {
    const std::int64_t count = cube_.dimension(i).count();
    const auto d = static_cast<Index>(i);
    if (cube_.is_choice(i) || (count > 0 && count <= kTriedOut)) {
      std::vector<VectorXd> others;
      for (std::int64_t k = 0; k < count; ++k) {
        const double there = cube_.coordinate(i, cube_.dimension(i).nth(k));
        if (there == x_D[d]) continue;
        others.push_back(x_D);
        others.back()[d] = there;
      }
      take_if_better(others, x_D, reached);
      return;
    }
    const NumericAxis& line = cube_.line(i);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<VectorXd> others;
      const double value = cube_.value(i, x_D[d]);
      const double range = cube_.value(i, 1) - cube_.value(i, 0);
      for (double away = line.step(); away <= range; away *= 2) {
        for (const double next : {value - away, value + away}) {
          if (next < cube_.value(i, 0) || next > cube_.value(i, 1)) continue;
          others.push_back(x_D);
          others.back()[d] = line.share(line.value(line.at(next)));
        }
      }
      if (!take_if_better(others, x_D, reached)) return;
    }
  }

  bool take_if_better(const std::vector<VectorXd>& others, VectorXd& x_D, double& reached) const {
    if (others.empty()) return false;
    const std::vector<double> of = scores(others);
    const auto most = static_cast<std::size_t>(std::max_element(of.begin(), of.end()) - of.begin());
    if (!(of[most] > reached)) return false;
    reached = of[most];
    x_D = others[most];
    return true;
  }

  const UnitCube& cube_;
  const GaussianProcess& model_;
  double least_;
  VectorXd lengths_D_;
};

class Gp final : public Sampler {
 public:
  Gp(const Config& config, Inputs inputs) : config_(config), inputs_(std::move(inputs)), cube_(*inputs_.space) {
    require_one_objective("gp", inputs_);
  }

  std::optional<Point> propose(const std::vector<Observation>& observations) const override {
    CounterRng rng(inputs_.seed, static_cast<std::int64_t>(observations.size()));
    const std::vector<std::size_t> order = ranked(observations);
    if (order.size() < static_cast<std::size_t>(config_.n_startup_trials)) return draw_allowed(*inputs_.space, rng);
    std::vector<VectorXd> drawn;
    for (int i = 0; i < kDrawn; ++i) {
      VectorXd x_D = cube_.at_quantiles([&](std::size_t) { return rng.uniform(); });
      if (cube_.allows(x_D)) drawn.push_back(std::move(x_D));
    }
    if (drawn.empty()) return draw_allowed(*inputs_.space, rng);
    double least = 0;
    const GaussianProcess model = model_of(observations, order, least);
    const auto found = Search(cube_, model, least).best(drawn, start_at(observations[order.front()].point, drawn), rng);
    return found ? cube_.point(*found) : draw_allowed(*inputs_.space, rng);
  }

 private:
  /// `least`: the best value, as the model sees it.
  GaussianProcess model_of(const std::vector<Observation>& observations, const std::vector<std::size_t>& order,
                           double& least) const {
    const double median = observations[order[order.size() / 2]].values.front();
    const std::vector<const Observation*> used = known(observations, order);
    VectorXd values_N(static_cast<Index>(used.size()));
    for (std::size_t n = 0; n < used.size(); ++n) {
      const double value = used[n]->values.front();
      values_N[static_cast<Index>(n)] = used[n]->state == Observation::State::kPruned ? std::max(value, median) : value;
    }
    const double mean = values_N.mean();
    const double deviation = std::max(std::sqrt((values_N.array() - mean).square().mean()), 1e-12);
    values_N = (values_N.array() - mean) / deviation;
    least = values_N.minCoeff();
    GaussianProcess model(cube_.seen(used), std::move(values_N), cube_.choices());
    add_unknown(observations, (median - mean) / deviation, model);
    return model;
  }

  /// A running variant counts with the predicted value, a failed one with at least the median: it is avoided, without a
  /// step in the surface if the prediction is higher.
  void add_unknown(const std::vector<Observation>& observations, double middle, GaussianProcess& model) const {
    std::vector<const Observation*> unknown;
    std::vector<double> least;
    for (auto one = observations.rbegin(); one != observations.rend() && unknown.size() < kPointsMax / 2; ++one) {
      const bool failed = one->state == Observation::State::kFailed;
      if (!failed && one->state != Observation::State::kOpen) continue;
      unknown.push_back(&*one);
      least.push_back(failed ? middle : -std::numeric_limits<double>::infinity());
    }
    model.fantasize(cube_.seen(unknown), Eigen::Map<const VectorXd>(least.data(), static_cast<Index>(least.size())));
  }

  /// The variants of the model: all with a result; if there are too many, the best half and the newest.
  static std::vector<const Observation*> known(const std::vector<Observation>& observations,
                                               const std::vector<std::size_t>& order) {
    std::vector<bool> taken(observations.size());
    std::size_t count = std::min(order.size(), kPointsMax / 2);
    for (std::size_t i = 0; i < count; ++i) taken[order[i]] = true;
    for (std::size_t i = observations.size(); i-- > 0 && count < kPointsMax;) {
      if (taken[i] || !has_result(observations[i])) continue;
      taken[i] = true;
      ++count;
    }
    std::vector<const Observation*> known;
    for (std::size_t i = 0; i < observations.size(); ++i) {
      if (taken[i]) known.push_back(&observations[i]);
    }
    return known;
  }

  /// A variant as a start: inactive dimensions are as in a random one.
  VectorXd start_at(const Point& point, const std::vector<VectorXd>& drawn) const {
    VectorXd x_D = drawn.front();
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (!std::isnan(point[i])) x_D[static_cast<Index>(i)] = cube_.coordinate(i, point[i]);
    }
    return x_D;
  }

  Config config_;
  Inputs inputs_;
  UnitCube cube_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Gp>(config, inputs);
}

}  // namespace components::sampler::gp
