#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "components/sampler/space.h"
#include "runner/core/node.h"

namespace components::sampler {

/// A variant that was proposed before, and what is known of it.
struct Tried {
  enum class State {
    kOpen,      ///< it trains, or waits to; `values` is empty
    kComplete,  ///< all its trials came to an end; `values` are their means
    kPruned,    ///< given up as hopeless; `values` are what it had reached
    kFailed,    ///< it came to nothing; `values` is empty
  };
  Point point;
  State state = State::kOpen;
  std::vector<double> values = {};  ///< by objective, the smaller the better, whatever the goal of the sweep
  std::int64_t step = 0;            ///< at which they were measured
};

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
