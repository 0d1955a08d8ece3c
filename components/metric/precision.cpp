#include "generated/metric/precision.h"  // Config; declares make()
#include "components/metric/class_counts.h"

namespace components::metric::precision {

std::shared_ptr<Metric> make(const Config& config, const Inputs& inputs) {
  return make_class_score(
      "precision", [](const ClassCount& one) { return ratio(one.hits, one.guessed); }, config, inputs);
}

}  // namespace components::metric::precision
