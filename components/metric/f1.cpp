#include "generated/metric/f1.h"  // Config; declares make()
#include "components/metric/class_counts.h"

namespace components::metric::f1 {

std::shared_ptr<Metric> make(const Config& config, const Inputs& inputs) {
  return make_class_score(
      "f1", [](const ClassCount& one) { return ratio(2.0 * one.hits, one.guessed + one.actual); }, config, inputs);
}

}  // namespace components::metric::f1
