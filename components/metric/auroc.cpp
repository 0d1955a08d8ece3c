#include <limits>

#include "components/metric/class_rows.h"
#include "generated/metric/auroc.h"  // Config; declares make()

namespace components::metric::auroc {
namespace {

/// The part of all pairs of a positive and a negative sample in which the positive one has the larger score; of equal
/// ones half.
double area(std::span<const ScoreGroup> groups) {
  double above = 0.0, positives = 0.0, negatives = 0.0;  // whole numbers and halves, exact below 2^52
  for (const ScoreGroup& group : groups) {
    above += group.negatives * (positives + group.positives / 2.0);
    positives += group.positives;
    negatives += group.negatives;
  }
  const double pairs = positives * negatives;
  return pairs > 0.0 ? above / pairs : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::shared_ptr<Metric> make(const Config& config, const Inputs& inputs) {
  return make_class_rows({.name = "auroc",
                          .score = area,
                          .why_undefined = "it needs samples of a class and of others, and outputs that are numbers",
                          .undefined = ClassRows::Undefined::kZero},
                         config, inputs);
}

}  // namespace components::metric::auroc
