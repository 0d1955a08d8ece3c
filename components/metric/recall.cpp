#include "generated/metric/recall.h"  // Config; declares make()
#include "components/metric/class_counts.h"

namespace components::metric::recall {

std::shared_ptr<Metric> make(const Config& config, const Inputs& inputs) {
  return make_class_score(
      "recall", [](const ClassCount& one) { return ratio(one.hits, one.actual); }, config, inputs);
}

}  // namespace components::metric::recall
