#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "components/sampler/math/observation.h"
#include "components/sampler/math/space.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components::sampler {

/// Proposes variants: a pure function of the seed and the earlier variants, so that a resumed sweep proposes the same
/// ones.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// Variant number `observations.size()`, from 0; nothing when there are no more.
  virtual std::optional<Point> propose(const std::vector<Observation>& observations) const = 0;

  /// Whether it comes to an end by itself; other samplers need `n_trials`.
  virtual bool is_finite() const { return false; }
  /// Whether it walks through all variants of the space, each once.
  virtual bool is_exhaustive() const { return false; }
  /// Number of its variants; nothing where it has no end, more than `most` of them, or more than can be counted
  /// quickly.
  virtual std::optional<std::int64_t> count(std::int64_t /*most*/) const { return std::nullopt; }
  /// Reports what in its block does not fit the space, each at its location. Until this finds nothing, propose() and
  /// count() must not be called.
  virtual void check(const runner::core::Node& /*block*/, runner::core::Diagnostics& /*diagnostics*/) const {}
};

struct Inputs {
  std::shared_ptr<const Space> space;
  std::uint64_t seed = 0;
  std::size_t objectives = 1;
};

/// RunError for a sweep with several objectives: `sampler` has a single objective.
void require_one_objective(const char* sampler, const Inputs& inputs);

/// The sampler of a sweep that names none. `has_limit`: `n_trials` says how many variants to try.
const char* default_type(const Space& space, bool has_limit, bool is_population);

std::shared_ptr<Sampler> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::sampler
