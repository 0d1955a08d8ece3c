#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "components/pruner/pruner.h"

namespace components::pruner {

/// Rungs at `first`, `first * factor`, `first * factor^2`, ... steps. At each rung the top 1/`factor` of the trials
/// continue, and always the best one.
///
/// Source  Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (ASHA, which stops trials)
class Halving {
 public:
  Halving(double first, std::int64_t factor) : first_(first), factor_(factor) {}

  /// As those of Pruner.
  void record(const Curve& curve);
  bool should_prune(const Curve& mine) const;
  std::optional<PrunedTrial> promoted() const;

 private:
  /// Rungs to which a trial's last report brought it, by number; `begin` is `end` where it brought it to none.
  struct Reached {
    std::size_t begin = 0, end = 0;
    auto operator<=>(const Reached&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy sees a 0
  };
  /// The record of a trial.
  struct Known {
    std::vector<double> at_rungs;  ///< from the first rung on
    std::optional<PrunedTrial> pruned;
    Reached reached;
  };
  /// Trials pruned at this step (negative, so that the furthest come first) that reached the same rungs: if the best is
  /// not promoted no other one is.
  using Rivals = std::pair<std::int64_t, Reached>;

  Reached reached_by(const std::vector<Report>& reports) const;
  std::vector<double> at_rungs(const std::vector<Report>& reports) const;
  /// `itself`: whether the judged trial is on record, too.
  bool falls_behind(double value, const Reached& reached, bool itself) const;
  void forget(std::int64_t trial);

  double first_;
  std::int64_t factor_;
  std::vector<std::vector<double>> rungs_;  ///< what trials had come to there, rising
  std::map<std::int64_t, Known> known_;
  std::map<Rivals, std::set<PrunedTrial>> pruned_;
};

}  // namespace components::pruner
