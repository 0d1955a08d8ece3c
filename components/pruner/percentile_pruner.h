#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "components/pruner/pruner.h"

namespace components::pruner {

/// Prunes by a trial's rank among the complete ones.
struct PercentileOptions {
  double percentile = 50;  ///< of the others' values at the same step; the best of mine has to reach it
  std::int64_t n_startup_trials = 5, n_warmup_steps = 0, n_min_trials = 1;
};

/// Prunes a trial that falls behind.
class PercentilePruner final : public Pruner {
 public:
  explicit PercentilePruner(const PercentileOptions& limits) : limits_(limits) {}

  void record(const Curve& curve) override;
  bool should_prune(const Curve& mine) const override;

 private:
  void forget(std::int64_t trial);

  PercentileOptions limits_;
  std::map<std::int64_t, std::vector<Report>> complete_;           ///< by trial
  std::unordered_map<std::int64_t, std::vector<double>> at_step_;  ///< what these had come to there, rising; no NaN
};

}  // namespace components::pruner
