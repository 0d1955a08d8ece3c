#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "components/sampler/math/cma_es_state.h"
#include "components/sampler/math/grid_points.h"
#include "components/sampler/math/numeric_axis.h"
#include "components/sampler/math/ranking.h"
#include "components/sampler/sampler.h"
#include "generated/sampler/cma_es.h"  // Config; declares make()

namespace components::sampler::cma_es {
namespace {

constexpr double kLeastStep = 0.3;  // deviations of a step: less would draw the same value for ever
constexpr int kAttemptsMax = 100;   // at a variant that the constraints allow, before one is drawn at random
constexpr std::uint64_t kRestart = 1;

class CmaEs final : public Sampler {
 public:
  CmaEs(const Config& config, Inputs inputs) : config_(config), inputs_(std::move(inputs)) {
    require_one_objective("cma_es", inputs_);
    const std::vector<Dimension>& dimensions = inputs_.space->dimensions();
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (dimensions[i].kind == Dimension::Kind::kChoice || !inputs_.space->is_always_active(i)) continue;
      modelled_.push_back(i);
      lines_.emplace_back(dimensions[i]);
    }
  }

  std::optional<Point> propose(const std::vector<Observation>& observations) const override {
    CounterRng rng(inputs_.seed, static_cast<std::int64_t>(observations.size()));
    const std::vector<std::size_t> finished = finished_after_startup(observations);
    if (modelled_.empty() || !is_begun(observations)) return draw_allowed(*inputs_.space, rng);
    const CmaEsState evolution = replay(observations, finished);
    for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
      Point point = point_of(evolution.draw(rng), rng);
      if (inputs_.space->allows(point)) return point;
    }
    return draw_allowed(*inputs_.space, rng);
  }

 private:
  bool is_begun(const std::vector<Observation>& observations) const {
    const auto finished = std::count_if(observations.begin(), observations.end(), has_result);
    return finished >= config_.n_startup_trials;
  }

  /// By number: a generation does not depend on the order in which trials end.
  std::vector<std::size_t> finished_after_startup(const std::vector<Observation>& observations) const {
    std::vector<std::size_t> finished;
    for (std::size_t i = 0; i < observations.size(); ++i) {
      if (has_result(observations[i])) finished.push_back(i);
    }
    const auto first = std::min(finished.size(), static_cast<std::size_t>(config_.n_startup_trials));
    finished.erase(finished.begin(), finished.begin() + static_cast<std::ptrdiff_t>(first));
    return finished;
  }

  /// The distribution after all complete generations. One that has converged restarts elsewhere, with twice as many
  /// points per generation (IPOP).
  CmaEsState replay(const std::vector<Observation>& observations, const std::vector<std::size_t>& finished) const {
    const auto size = static_cast<Eigen::Index>(modelled_.size());
    Eigen::VectorXd least(size);
    for (Eigen::Index i = 0; i < size; ++i) {
      const NumericAxis& line = lines_[static_cast<std::size_t>(i)];
      // Of logarithms the largest steps are the first, and shrink to nothing.
      const bool even = !inputs_.space->dimensions()[modelled_[static_cast<std::size_t>(i)]].log;
      least[i] = even ? kLeastStep * line.step() / (line.high() - line.low()) : 0;
    }
    CmaEsState evolution(Eigen::VectorXd::Constant(size, 0.5), config_.sigma, least, config_.population.value_or(0));
    for (std::size_t begin = 0; begin + static_cast<std::size_t>(evolution.population()) <= finished.size();) {
      const std::size_t end = begin + static_cast<std::size_t>(evolution.population());
      std::vector<Observation> generation;
      for (std::size_t i = begin; i < end; ++i) generation.push_back(observations[finished[i]]);
      std::vector<Eigen::VectorXd> points;
      for (const std::size_t i : ranked(generation)) points.push_back(shares_of(generation[i].point));
      evolution.learn(points);
      begin = end;
      if (!evolution.has_converged()) continue;
      CounterRng rng(inputs_.seed, static_cast<std::int64_t>(begin), kRestart);
      Eigen::VectorXd mean(size);
      for (double& x : mean) x = rng.uniform();
      evolution = CmaEsState(mean, config_.sigma, least, 2 * evolution.population());
    }
    return evolution;
  }

  Eigen::VectorXd shares_of(const Point& point) const {
    Eigen::VectorXd shares(static_cast<Eigen::Index>(modelled_.size()));
    for (std::size_t i = 0; i < modelled_.size(); ++i) {
      shares[static_cast<Eigen::Index>(i)] = lines_[i].share(point[modelled_[i]]);
    }
    return shares;
  }

  /// Unmodelled dimensions are drawn from their distribution.
  Point point_of(const Eigen::VectorXd& shares, CounterRng& rng) const {
    Point values(inputs_.space->dimensions().size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 0; i < modelled_.size(); ++i) {
      values[modelled_[i]] = lines_[i].from_unit(shares[static_cast<Eigen::Index>(i)]);
    }
    return make_point(*inputs_.space, [&](std::size_t i) {
      return std::isnan(values[i]) ? inputs_.space->dimensions()[i].quantile(rng.uniform()) : values[i];
    });
  }

  Config config_;
  Inputs inputs_;
  std::vector<std::size_t> modelled_;  ///< numbers that play a part in every variant
  std::vector<NumericAxis> lines_;     ///< theirs
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<CmaEs>(config, inputs);
}

}  // namespace components::sampler::cma_es
