#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "components/sampler/math/space.h"
#include "components/sampler/math/tried.h"
#include "runner/core/node.h"

namespace components::sampler {

/// Proposes variants: a pure function of the seed and the earlier variants, so that a resumed sweep proposes the same
/// ones.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// Variant number `tried.size()`, from 0; nothing when there are no more.
  virtual std::optional<Point> propose(const std::vector<Tried>& tried) const = 0;
};

struct Inputs {
  std::shared_ptr<const Space> space;
  std::uint64_t seed = 0;
  std::size_t objectives = 1;
};

/// RunError for a sweep with several objectives: `sampler` has a single objective.
void require_one_objective(const char* sampler, const Inputs& inputs);

std::shared_ptr<Sampler> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::sampler
