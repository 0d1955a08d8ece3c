#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "components/sampler/math/grid_points.h"
#include "components/sampler/math/ranking.h"
#include "components/sampler/sampler.h"
#include "generated/sampler/nsga2.h"  // Config; declares make()

namespace components::sampler::nsga2 {
namespace {

constexpr int kAttemptsMax = 100;  // at a variant that the constraints allow, before one is drawn at random

class Nsga2 final : public Sampler {
 public:
  Nsga2(const Config& config, Inputs inputs)
      : config_(config), inputs_(std::move(inputs)), population_(static_cast<std::size_t>(config.population)) {}

  std::optional<Point> propose(const std::vector<Observation>& observations) const override {
    CounterRng rng(inputs_.seed, static_cast<std::int64_t>(observations.size()));
    const std::vector<const Point*> parents = parents_of(observations);
    if (parents.empty()) return draw_allowed(*inputs_.space, rng);
    for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
      const Point& one = *picked(parents, rng);
      const Point& other = rng.uniform() < config_.crossover ? *picked(parents, rng) : one;
      Point child = child_of(one, other, rng);
      if (inputs_.space->allows(child)) return child;
    }
    return draw_allowed(*inputs_.space, rng);
  }

 private:
  /// The best of all complete generations, the best first; empty until the first one is complete. Selected from all at
  /// once rather than generation by generation: the best of all were among the best then, too.
  std::vector<const Point*> parents_of(const std::vector<Observation>& observations) const {
    std::vector<Observation> finished;
    std::vector<const Point*> points;
    for (const Observation& one : observations) {
      if (!has_result(one)) continue;
      finished.push_back(one);
      points.push_back(&one.point);
    }
    finished.resize(finished.size() / population_ * population_);
    std::vector<const Point*> parents;
    for (const std::size_t i : ranked(finished)) {
      if (parents.size() < population_) parents.push_back(points[i]);
    }
    return parents;
  }

  /// The better of two; they stand in their order.
  static const Point* picked(const std::vector<const Point*>& parents, CounterRng& rng) {
    const auto count = static_cast<double>(parents.size());
    const double place = std::min(rng.uniform(), rng.uniform());
    return parents[static_cast<std::size_t>(place * count)];
  }

  Point child_of(const Point& one, const Point& other, CounterRng& rng) const {
    const std::vector<Dimension>& dimensions = inputs_.space->dimensions();
    const double mutation = config_.mutation.value_or(1 / static_cast<double>(dimensions.size()));
    return make_point(*inputs_.space, [&](std::size_t i) {
      // A dimension inactive in one parent comes from the other; if inactive in both, it is drawn.
      const bool first = rng.uniform() < 0.5;
      const double heir = first != std::isnan((first ? one : other)[i]) ? one[i] : other[i];
      if (rng.uniform() < mutation || std::isnan(heir)) return dimensions[i].quantile(rng.uniform());
      return heir;
    });
  }

  Config config_;
  Inputs inputs_;
  std::size_t population_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Nsga2>(config, inputs);
}

}  // namespace components::sampler::nsga2
