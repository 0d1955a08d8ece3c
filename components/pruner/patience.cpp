#include <algorithm>
#include <cmath>
#include <limits>

#include "components/pruner/pruner.h"
#include "generated/pruner/patience.h"  // Config; declares make()

namespace components::pruner::patience {
namespace {

using Reports = std::vector<Report>;

double best_of(Reports::const_iterator begin, Reports::const_iterator end) {
  double best = std::numeric_limits<double>::infinity();
  for (; begin != end; ++begin) {
    if (!std::isnan(begin->value)) best = std::min(best, begin->value);
  }
  return best;
}

class Patience final : public Pruner {
 public:
  Patience(const Config& config, const Inputs& inputs)
      : config_(config), then_(config.pruner ? build(*config.pruner, inputs) : nullptr) {}

  void record(const Curve& curve) override {
    if (then_ != nullptr) then_->record(curve);
  }
  bool should_prune(const Curve& mine) const override {
    const auto latest = config_.patience + 1;
    if (static_cast<std::int64_t>(mine.reports.size()) <= latest) return false;
    const auto since = mine.reports.end() - latest;
    const bool stuck = best_of(mine.reports.begin(), since) + config_.min_delta < best_of(since, mine.reports.end());
    return stuck && (then_ == nullptr || then_->should_prune(mine));
  }
  bool promotes() const override { return then_ != nullptr && then_->promotes(); }
  /// A trial pruned for stagnation stays pruned.
  std::optional<PrunedTrial> promoted() const override { return then_ != nullptr ? then_->promoted() : std::nullopt; }

 private:
  Config config_;
  std::shared_ptr<Pruner> then_;
};

}  // namespace

std::shared_ptr<Pruner> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Patience>(config, inputs);
}

}  // namespace components::pruner::patience
