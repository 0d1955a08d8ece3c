#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "components/sampler/sampler.h"
#include "generated/section/sweep.h"
#include "runner/core/diagnostics.h"
#include "runner/sweep/spec/space.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::sweep {

/// One segment of a population member: its values, the parent's checkpoint, its last step.
struct Segment {
  Point point;
  std::int64_t parent = -1;  ///< number of the variant; -1: starts from scratch
  std::int64_t until = 0;
};

/// Population-based training in generations: variant `g * size + i` is member i of generation g, and a generation
/// begins when the previous one has ended. So it is a function of earlier variants, like samplers.
///
/// Source  Jaderberg et al., Population Based Training of Neural Networks, arXiv:1711.09846: truncation selection,
///         perturb or resample; synchronous, as `synch=True` of Ray Tune's scheduler
class Population {
 public:
  /// Null when the recipe cannot be trained in segments; `diagnostics` has the reason.
  static std::shared_ptr<const Population> read(const resolve::Recipe& recipe, std::shared_ptr<const RecipeSpace> space,
                                                std::uint64_t seed, core::Diagnostics& diagnostics);

  std::uint64_t seed() const { return seed_; }
  std::int64_t size() const { return config_.size; }
  std::int64_t variants() const { return size() * generations_; }
  std::int64_t generation_of(std::int64_t variant) const { return variant / size(); }
  std::int64_t end_of_generation(std::int64_t generation) const;
  /// Whether the next variant depends on some that have not ended.
  bool waits(const std::vector<components::sampler::Observation>& observations) const;
  /// The next variant of the second generation or a later one; nothing when there are no more, or no member to resume
  /// from. Only if it does not wait.
  std::optional<Segment> next(const std::vector<components::sampler::Observation>& observations) const;

 private:
  using Observation = components::sampler::Observation;
  Population() = default;
  bool find_explored(const resolve::Recipe& recipe, core::Diagnostics& diagnostics);
  Point explored(const Point& point, std::uint64_t seed, std::int64_t variant) const;

  sections::sweep::Population config_;
  std::shared_ptr<const RecipeSpace> space_;
  std::uint64_t seed_ = 0;
  std::int64_t total_steps_ = 0, generations_ = 0;
  std::vector<bool> explores_;  ///< by dimension
};

}  // namespace runner::sweep
