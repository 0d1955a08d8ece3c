#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "components/sampler/math/space.h"

namespace runner::sweep {

struct ImportanceOptions {
  int trees = 64, depth_max = 64;
  std::uint64_t seed = 0;
};

/// The share of each dimension alone in the variance of the values over the space, by functional analysis of variance
/// (fANOVA): a random forest fitted to the values is averaged over all other dimensions. The shares add up to 1,
/// without interactions, as in Optuna. Nothing for a dimension that is inactive in some points; 0 for one with a single
/// value. All are 0 if the values are equal.
///
/// points  in sampler coordinates, with finite values. Axes are linear, not
///         logarithms, and around a mean (kNormal) the range is that of the points.
/// Source  Hutter, Hoos & Leyton-Brown, An Efficient Approach for Assessing Hyperparameter Importance, ICML 2014;
///         optuna.importance.FanovaImportanceEvaluator, with the forest of scikit-learn's RandomForestRegressor
std::vector<std::optional<double>> importances(const std::vector<components::sampler::Dimension>& dimensions,
                                               const std::vector<std::vector<double>>& points,
                                               const std::vector<double>& values,
                                               const ImportanceOptions& options = {});

}  // namespace runner::sweep
