#include <cmath>
#include <limits>

#include "components/metric/class_counts.h"
#include "generated/metric/matthews.h"  // Config; declares make()

namespace components::metric::matthews {
namespace {

/// Among two classes, where a row or column of the confusion matrix is empty: torchmetrics' limit for nearly empty
/// ones.
double of_nearly_empty(const ClassCount& zero, const ClassCount& one) {
  const double tn = zero.hits, tp = one.hits, fp = one.guessed - tp, fn = zero.guessed - tn;
  if (tp + tn != 0.0 && fp + fn == 0.0) return 1.0;
  if (tp + tn == 0.0 && fp + fn != 0.0) return -1.0;
  constexpr double kEps = std::numeric_limits<float>::epsilon();
  const double difference = tn == 0.0 ? (fn == 0.0 ? tp - fp : tp - fn) : fn == 0.0 ? tn - fp : tn - fn;
  const double denominator = (tp + fp + kEps) * (tp + fn + kEps) * (tn + fp + kEps) * (tn + fn + kEps);
  return std::sqrt(kEps) * difference / std::sqrt(denominator);
}

class Matthews final : public ClassCounts {
 public:
  using ClassCounts::ClassCounts;

  std::vector<std::string> names() const override { return {"matthews"}; }
  std::vector<double> values() const override {
    const ClassCount all = total();
    if (all.actual == 0.0) return {std::numeric_limits<double>::quiet_NaN()};
    // Whole numbers; in parts of all, their products do not leave the range of a double.
    double both = all.hits / all.actual, of_guesses = 1.0, of_targets = 1.0;
    for (const ClassCount& one : counts()) {
      const double guessed = one.guessed / all.actual, actual = one.actual / all.actual;
      both -= guessed * actual;
      of_guesses -= guessed * guessed;
      of_targets -= actual * actual;
    }
    const bool constant = is_constant(&ClassCount::guessed) || is_constant(&ClassCount::actual);
    if (!constant) return {both / std::sqrt(of_guesses * of_targets)};
    return {counts().size() == 2 ? of_nearly_empty(counts()[0], counts()[1]) : 0.0};
  }

 private:
  /// Whether all of them are one class.
  bool is_constant(double ClassCount::*member) const {
    int classes = 0;
    for (const ClassCount& one : counts()) classes += one.*member > 0.0 ? 1 : 0;
    return classes == 1;
  }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  if (!takes_classes("matthews", inputs)) return nullptr;
  return std::make_shared<Matthews>(inputs);
}

}  // namespace components::metric::matthews
