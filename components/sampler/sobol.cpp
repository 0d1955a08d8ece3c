#include "generated/sampler/sobol.h"  // Config; declares make()
#include "components/sampler/math/grid_points.h"
#include "components/sampler/math/sobol_directions.h"
#include "components/sampler/math/sobol_sequence.h"
#include "components/sampler/sampler.h"
#include "runner/core/error.h"

namespace components::sampler::sobol {
namespace {

SobolSequence sequence_for(const Config& config, const Inputs& inputs) {
  const std::size_t count = inputs.space->dimensions().size();
  if (count > static_cast<std::size_t>(kSobolDimensions)) {
    throw runner::core::RunError("a Sobol sequence has at most " + std::to_string(kSobolDimensions) +
                                     " dimensions here, but the sweep has " + std::to_string(count),
                                 "sampler: random", runner::core::kExitUsage);
  }
  return SobolSequence(count, config.scramble ? std::optional(inputs.seed) : std::nullopt);
}

class Sobol final : public Sampler {
 public:
  Sobol(const Config& config, const Inputs& inputs) : space_(inputs.space), sequence_(sequence_for(config, inputs)) {}

  std::optional<Point> propose(const std::vector<Observation>& observations) const override {
    std::size_t left = observations.size();
    // From the beginning: points that violate the constraints do not count.
    int refused = 0;
    for (std::uint64_t index = 0; refused < kDrawsMax; ++index) {
      Point point =
          make_point(*space_, [&](std::size_t i) { return space_->dimensions()[i].quantile(sequence_.at(index, i)); });
      if (!space_->allows(point)) {
        ++refused;
        continue;
      }
      if (left-- == 0) return point;
      refused = 0;
    }
    return std::nullopt;
  }

 private:
  std::shared_ptr<const Space> space_;
  SobolSequence sequence_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Sobol>(config, inputs);
}

}  // namespace components::sampler::sobol
