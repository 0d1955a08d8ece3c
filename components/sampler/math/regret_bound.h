#pragma once

#include <cstddef>
#include <vector>

#include "components/sampler/math/tried.h"

namespace components::sampler {

/// Of what the bound is made: the best share of the variants, at least `least` of them where there are so many.
struct RegretOptions {
  double share = 0.5;
  std::size_t least = 20;
};

/// How much better than the best of `complete` the best of the space is, at most, in units of the value: what a
/// Gaussian process of the best variants holds possible, at a confidence of 90 %. `complete`: variants with one value
/// each, one of them at least; a space of at most kSobolDimensions. A function of these alone.
///
/// Source  Makarova et al., Automatic Termination for Hyperparameter Optimization, AutoML 2022, with the constants of
///         Optuna 5's RegretBoundEvaluator
double regret_bound(const Space& space, const std::vector<Tried>& complete, const RegretOptions& options);

/// Bounds that a later one can be measured by: of the first variant after some that are left out, of the first two, and
/// so on.
struct FirstBounds {
  std::size_t left_out = 10, count = 20;
};

/// Their median; of an even number the larger of the two in the middle. `complete` has as many variants as that takes.
///
/// Source  Ishibashi et al., A Stopping Criterion for Bayesian Optimization by the Gap of Expected Minimum Simple
///         Regrets, AISTATS 2023, as Optuna 5's MedianErrorEvaluator
double median_of_first_bounds(const Space& space, const std::vector<Tried>& complete, const FirstBounds& first,
                              const RegretOptions& options);

}  // namespace components::sampler
