#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "components/sampler/math/grid_points.h"
#include "components/sampler/math/parzen.h"
#include "components/sampler/math/ranking.h"
#include "components/sampler/sampler.h"
#include "generated/sampler/tpe.h"  // Config; declares make()

namespace components::sampler::tpe {
namespace {

constexpr std::size_t kGoodMax = 25;
constexpr double kGoodShare = 0.1;
constexpr int kAttemptsMax = 100;  // at a variant that the constraints allow, before one is drawn at random

using Dimensions = std::vector<std::size_t>;

/// Dimensions that the same variants have, so that they can be modelled together.
std::vector<Dimensions> groups_of(const std::vector<Observation>& observations, std::size_t dimensions) {
  std::map<std::vector<bool>, Dimensions> by_pattern;
  std::vector<std::vector<bool>> order;
  for (std::size_t i = 0; i < dimensions; ++i) {
    std::vector<bool> pattern;
    for (const Observation& one : observations) pattern.push_back(!std::isnan(one.point[i]));
    if (!by_pattern.contains(pattern)) order.push_back(pattern);
    by_pattern[pattern].push_back(i);
  }
  std::vector<Dimensions> groups;
  for (const std::vector<bool>& pattern : order) groups.push_back(by_pattern[pattern]);
  return groups;
}

class Tpe final : public Sampler {
 public:
  Tpe(const Config& config, Inputs inputs) : config_(config), inputs_(std::move(inputs)) {}

  std::optional<Point> propose(const std::vector<Observation>& observations) const override {
    CounterRng rng(inputs_.seed, static_cast<std::int64_t>(observations.size()));
    const std::vector<std::size_t> order = ranked(observations);
    if (order.size() < static_cast<std::size_t>(config_.n_startup_trials)) return draw_allowed(*inputs_.space, rng);
    const auto share = static_cast<std::size_t>(std::ceil(kGoodShare * static_cast<double>(order.size())));
    std::vector<bool> is_good(observations.size()), counts(observations.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      counts[order[i]] = true;
      is_good[order[i]] = i < std::min(share, kGoodMax);
    }
    for (std::size_t i = 0; i < observations.size(); ++i) {
      const bool failed = observations[i].state == Observation::State::kFailed;
      const bool open = observations[i].state == Observation::State::kOpen;
      counts[i] = counts[i] || failed || (open && config_.constant_liar);
    }
    const std::vector<Model> models = models_of(observations, is_good, counts);
    for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
      Point drawn(inputs_.space->dimensions().size());
      for (const Model& model : models) take_best(model.good, model.bad, rng, drawn);
      Point point = make_point(*inputs_.space, [&drawn](std::size_t i) { return drawn[i]; });
      if (inputs_.space->allows(point)) return point;
    }
    return draw_allowed(*inputs_.space, rng);
  }

 private:
  /// Where good variants lie in the dimensions of one group, and where the others do.
  struct Model {
    Parzen good, bad;
  };
  std::vector<Model> models_of(const std::vector<Observation>& observations, const std::vector<bool>& is_good,
                               const std::vector<bool>& counts) const {
    std::vector<Model> models;
    for (const Dimensions& group : groups_of(observations, inputs_.space->dimensions().size())) {
      std::vector<const Point*> good, bad;
      for (std::size_t i = 0; i < observations.size(); ++i) {
        if (!counts[i] || std::isnan(observations[i].point[group.front()])) continue;
        (is_good[i] ? good : bad).push_back(&observations[i].point);
      }
      models.push_back({Parzen(*inputs_.space, group, good, config_.prior_weight),
                        Parzen(*inputs_.space, group, bad, config_.prior_weight)});
    }
    return models;
  }

  /// Of several draws from the good, the one that is least like the bad.
  void take_best(const Parzen& good, const Parzen& bad, CounterRng& rng, Point& point) const {
    double most = -std::numeric_limits<double>::infinity();
    Point best = point;
    for (std::int64_t i = 0; i < config_.n_ei_candidates; ++i) {
      good.draw(rng, point);
      const double gain = good.log_density(point) - bad.log_density(point);
      if (i > 0 && gain <= most) continue;
      most = gain;
      best = point;
    }
    point = std::move(best);
  }

  Config config_;
  Inputs inputs_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Tpe>(config, inputs);
}

}  // namespace components::sampler::tpe
