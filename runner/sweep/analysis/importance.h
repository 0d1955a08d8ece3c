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

/// The share of each dimension alone in how much the values vary over the space, by functional analysis of variance: a
/// random forest learns the values, and is averaged over all other dimensions. The shares add up to 1; what dimensions
/// do together is in none of them, as in Optuna. Nothing for a dimension that plays no part in some of the points; 0
/// for one that has one value. All are 0 where the values are the same.
///
/// points  as samplers see them, with the values that they came to; finite ones. Axes are taken as they are, not their
///         logarithms, and around a mean (kNormal) the range is that of the points.
/// Source  Hutter, Hoos & Leyton-Brown, An Efficient Approach for Assessing Hyperparameter Importance, ICML 2014;
///         optuna.importance.FanovaImportanceEvaluator, with the forest of scikit-learn's RandomForestRegressor
std::vector<std::optional<double>> importances(const std::vector<components::sampler::Dimension>& dimensions,
                                               const std::vector<std::vector<double>>& points,
                                               const std::vector<double>& values,
                                               const ImportanceOptions& options = {});

}  // namespace runner::sweep
