#pragma once

#include <cstddef>
#include <vector>

#include "components/sampler/math/observation.h"

namespace components::sampler {

/// The variants of the bound: the best share of them, but at least `least` if available.
struct RegretOptions {
  double share = 0.5;
  std::size_t least = 20;
};

/// Upper bound of how much the best point of the space improves on the best of `complete`, in units of the value: from
/// a Gaussian process of the best variants, at 90 % confidence. `complete`: at least one variant, with one value each;
/// a space of at most kSobolDimensions. A pure function.
///
/// Source  Makarova et al., Automatic Termination for Hyperparameter Optimization, AutoML 2022, with the constants of
///         Optuna 5's RegretBoundEvaluator
double regret_bound(const Space& space, const std::vector<Observation>& complete, const RegretOptions& options);

/// Bounds that a later one can be measured by: of the first variant after some that are left out, of the first two, and
/// so on.
struct FirstBounds {
  std::size_t left_out = 10, count = 20;
};

/// Their median; of an even number the larger of the two in the middle. `complete` has as many variants as that takes.
///
/// Source  Ishibashi et al., A Stopping Criterion for Bayesian Optimization by the Gap of Expected Minimum Simple
///         Regrets, AISTATS 2023, as Optuna 5's MedianErrorEvaluator
double median_of_first_bounds(const Space& space, const std::vector<Observation>& complete, const FirstBounds& first,
                              const RegretOptions& options);

}  // namespace components::sampler
