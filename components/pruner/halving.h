#pragma once

#include <cstdint>
#include <vector>

#include "components/pruner/pruner.h"

namespace components::pruner {

/// Rungs at `first`, `first * factor`, `first * factor^2`, ... steps. Of those that have reached a rung, one in
/// `factor` goes on, and always the best one.
///
/// Source  Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (ASHA, which stops trials)
struct Halving {
  double first = 1;
  std::int64_t factor = 2;

  /// Whether `mine`, whose last report may have brought it to a rung, is to stop there.
  bool stops(const Curve& mine, const std::vector<Curve>& others) const;
};

}  // namespace components::pruner
