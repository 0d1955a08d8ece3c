#include "generated/sampler/random.h"  // Config; declares make()
#include "components/sampler/math/grid_points.h"
#include "components/sampler/sampler.h"

namespace components::sampler::random {
namespace {

class Random final : public Sampler {
 public:
  explicit Random(Inputs inputs) : inputs_(std::move(inputs)) {}

  std::optional<Point> propose(const std::vector<Observation>& observations) const override {
    CounterRng rng(inputs_.seed, static_cast<std::int64_t>(observations.size()));
    return draw_allowed(*inputs_.space, rng);
  }

 private:
  Inputs inputs_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config&, const Inputs& inputs) { return std::make_shared<Random>(inputs); }

}  // namespace components::sampler::random
