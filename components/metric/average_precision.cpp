#include <limits>

#include "components/metric/class_rows.h"
#include "generated/metric/average_precision.h"  // Config; declares make()

namespace components::metric::average_precision {
namespace {

/// The precision at each score, weighted by how much the recall grows there.
double of_groups(std::span<const ScoreGroup> groups) {
  double sum = 0.0, positives = 0.0, seen = 0.0;
  for (const ScoreGroup& group : groups) {
    positives += group.positives;
    seen += group.positives + group.negatives;
    sum += group.positives * positives / seen;
  }
  return positives > 0.0 ? sum / positives : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::shared_ptr<Metric> make(const Config& config, const Inputs& inputs) {
  return make_class_rows({.name = "average_precision",
                          .score = of_groups,
                          .why_undefined = "it needs samples of the class, and outputs that are numbers",
                          .undefined = ClassRows::Undefined::kLeftOut},
                         config, inputs);
}

}  // namespace components::metric::average_precision
