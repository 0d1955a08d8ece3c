#include "runner/sweep/next_variant.h"

#include "components/sampler/math/counter_rng.h"
#include "components/sampler/math/grid_points.h"

namespace runner::sweep {
namespace {

using components::sampler::Observation;

constexpr std::uint64_t kPurpose = 3;  // of members beyond what the sampler has

/// A generation is to be whole: what a grid or a list does not fill is drawn.
std::optional<Segment> next_segment(const Sweep& sweep, const std::vector<Observation>& observations) {
  const Population& population = *sweep.population();
  const auto number = static_cast<std::int64_t>(observations.size());
  if (number >= population.size()) return population.next(observations);
  auto point = sweep.sampler().propose(observations);
  if (!point) {
    components::sampler::CounterRng rng(population.seed(), number, kPurpose);
    point = components::sampler::draw_allowed(sweep.space(), rng);
  }
  if (!point) return std::nullopt;
  return Segment{*std::move(point), -1, population.end_of_generation(0)};
}

}  // namespace

bool next_variant_waits(const Sweep& sweep, const std::vector<Observation>& observations) {
  return sweep.population() != nullptr && sweep.population()->waits(observations);
}

std::optional<Variant> next_variant(const Sweep& sweep, const std::vector<Observation>& observations) {
  std::optional<Segment> segment;
  if (sweep.population() != nullptr) {
    segment = next_segment(sweep, observations);
  } else if (const auto point = sweep.sampler().propose(observations)) {
    segment = Segment{*point, -1, 0};
  }
  if (!segment) return std::nullopt;
  const std::string text = sweep.space().text(segment->point);
  return Variant{static_cast<std::int64_t>(observations.size()), std::move(segment->point), text, segment->parent,
                 segment->until};
}

}  // namespace runner::sweep
