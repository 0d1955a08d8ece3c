#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "components/sampler/math/space.h"
#include "components/sampler/math/tried.h"
#include "runner/core/node.h"

namespace components::sampler {

/// Chooses variants: a pure function of the seed and of what was tried, so that a sweep which is stopped and goes on
/// proposes the same ones.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// The variant number `tried.size()`, from 0; nothing when there is no further one.
  virtual std::optional<Point> propose(const std::vector<Tried>& tried) const = 0;
};

struct Inputs {
  std::shared_ptr<const Space> space;
  std::uint64_t seed = 0;
  std::size_t objectives = 1;
};

/// RunError where the sweep has several: `sampler` compares single numbers.
void require_one_objective(const char* sampler, const Inputs& inputs);

std::shared_ptr<Sampler> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::sampler
