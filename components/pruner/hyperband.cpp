#include <cmath>
#include <vector>

#include "components/pruner/halving.h"
#include "components/pruner/pruner.h"
#include "generated/pruner/hyperband.h"  // Config; declares make()
#include "runner/core/error.h"

namespace components::pruner::hyperband {
namespace {

/// Brackets of successive halving: the first one begins to stop trials at `min_steps`, each further one `factor` times
/// later, and has fewer trials. Trials are dealt out to the brackets in rounds.
class Hyperband final : public Pruner {
 public:
  Hyperband(const Config& config, std::int64_t max_steps) : promotes_(config.promote) {
    const auto factor = static_cast<double>(config.reduction_factor);
    double first = static_cast<double>(config.min_steps);
    for (; first <= static_cast<double>(max_steps); first *= factor) {
      brackets_.emplace_back(first, config.reduction_factor);
    }
    for (std::size_t bracket = 0; bracket < brackets_.size(); ++bracket) {
      const auto halvings = static_cast<double>(brackets_.size() - 1 - bracket);
      const double size =
          std::ceil(static_cast<double>(brackets_.size()) * std::pow(factor, halvings) / (halvings + 1));
      sizes_.push_back(static_cast<std::int64_t>(size));
      round_ += sizes_.back();
    }
  }

  void record(const Curve& curve) override { brackets_[bracket_of(curve.trial)].record(curve); }
  bool should_prune(const Curve& mine) const override { return brackets_[bracket_of(mine.trial)].should_prune(mine); }
  bool promotes() const override { return promotes_; }
  std::optional<PrunedTrial> promoted() const override {
    std::optional<PrunedTrial> first;
    for (const Halving& bracket : brackets_) {
      const auto one = bracket.promoted();
      if (one && (!first || *one < *first)) first = one;
    }
    return first;
  }

 private:
  std::size_t bracket_of(std::int64_t trial) const {
    std::int64_t left = trial % round_;
    std::size_t bracket = 0;
    while (left >= sizes_[bracket]) left -= sizes_[bracket++];
    return bracket;
  }

  std::vector<Halving> brackets_;
  std::vector<std::int64_t> sizes_;  ///< trials of each bracket in a round
  std::int64_t round_ = 0;
  bool promotes_;
};

}  // namespace

std::shared_ptr<Pruner> make(const Config& config, const Inputs& inputs) {
  const auto max_steps = config.max_steps ? config.max_steps : inputs.total_steps;
  if (!max_steps) {
    throw runner::core::RunError("neither sweep.pruner.max_steps nor training.max_steps is set",
                                 "set one of them to the number of steps of a trial", runner::core::kExitUsage);
  }
  if (*max_steps < config.min_steps) {
    throw runner::core::RunError("sweep.pruner.min_steps is " + std::to_string(config.min_steps) +
                                     ", but a trial has " + std::to_string(*max_steps) + " steps",
                                 "use a smaller min_steps", runner::core::kExitUsage);
  }
  return std::make_shared<Hyperband>(config, *max_steps);
}

}  // namespace components::pruner::hyperband
