#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "components/pruner/pruner.h"

namespace components::pruner {

/// When a trial's rank among the complete ones decides.
struct RankAmong {
  double percentile = 50;  ///< of the others' values at the same step; the best of mine has to reach it
  std::int64_t n_startup_trials = 5, n_warmup_steps = 0, n_min_trials = 1;

  bool falls_behind(const Curve& mine, const std::vector<Curve>& others) const;
};

/// Gives a trial up that falls behind.
std::shared_ptr<Pruner> make_pruner(const RankAmong& rank);

}  // namespace components::pruner
